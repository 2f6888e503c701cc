"""Requests through real proxies and to servers whose certificates an authority of ours signs."""

from __future__ import annotations

import base64
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
import trustme

from tests.vaala.models.routes import HOST, Authority, proxy_to
from vaala.models.base import Deadlines, ModelFailure
from vaala.models.http import Call, Http, open_http
from vaala.models.listing import list_models
from vaala.models.provider import Provider, Route, Trust
from vaala.models.secret import Secret
from vaala.testing import Reply, chat_server

PASSWORD = "hunter2-hunter2"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority(trustme.CA())


async def _ask(http: Http, url: str, route: Route = Route()) -> bytes:  # noqa: B008
    provider = Provider("team", url, route=route)
    call = Call(url, {}, None, Deadlines(), http.origin(provider), provider)
    async with http.exchange(call) as answer:
        return await answer.read_all(1000)


async def _fails(url: str, route: Route, environ: Mapping[str, str]) -> ModelFailure:
    async with open_http(environ) as http:
        with pytest.raises(ModelFailure) as caught:
            await _ask(http, url, route)
    assert PASSWORD not in caught.value.message
    return caught.value


async def test_the_proxy_of_the_environment_tunnels(authority: Authority) -> None:
    async with authority.server() as server, proxy_to(server.port) as proxy:
        environ = {"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"}
        async with open_http(environ) as http:
            assert await _ask(http, f"https://{HOST}/v1", Route(ca=authority.pem)) == b"over TLS"
        assert proxy.asked == [f"CONNECT {HOST}:443 HTTP/1.1"]


async def test_the_proxy_of_a_provider_goes_before_the_environment(authority: Authority) -> None:
    user = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    async with authority.server() as server, proxy_to(server.port, user) as proxy:
        environ = {"HTTPS_PROXY": "http://127.0.0.1:1", "NO_PROXY": "*"}  # B10-3
        url = Secret(f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}")
        async with open_http(environ) as http:
            route = Route(proxy=url, ca=authority.pem)
            assert await _ask(http, f"https://{HOST}/v1", route) == b"over TLS"
        assert len(proxy.heads) == 1


async def test_to_this_machine_no_proxy_is_used(authority: Authority) -> None:  # B10-1
    async with authority.server() as server, open_http({}) as http:
        route = Route(proxy=Secret("http://127.0.0.1:1"), ca=authority.pem)
        assert await _ask(http, server.base_url, route) == b"over TLS"


@pytest.mark.parametrize("configured", [True, False])
async def test_a_proxy_that_refuses_is_told_without_the_password(  # B10-4
    authority: Authority, configured: bool
) -> None:
    async with authority.server() as server, proxy_to(server.port, "another") as proxy:
        url = f"http://me:{PASSWORD}@127.0.0.1:{proxy.port}"
        environ = {} if configured else {"HTTPS_PROXY": url}
        route = Route(proxy=Secret(url) if configured else None, ca=authority.pem)
        failure = await _fails(f"https://{HOST}/v1", route, environ)
    whose = "providers.yaml" if configured else "the environment"
    assert failure.message == (
        f"team: the proxy of {whose} for https://{HOST} refused: 407 Proxy Authentication Required"
    )
    assert not failure.retryable


async def test_a_private_authority_is_trusted_where_it_is_named(  # B10-2
    authority: Authority, tmp_path: Path
) -> None:
    file = authority.write(tmp_path / "ca.pem")
    async with authority.server() as server:
        url = server.base_url
        for environ, route in (
            ({}, Route(ca=authority.pem, ca_file=str(file))),
            ({"SSL_CERT_FILE": str(file)}, Route()),
            ({}, Route(ca=authority.pem, trust="system")),
        ):
            async with open_http(environ) as http:
                assert await _ask(http, url, route) == b"over TLS", (environ, route)
        failure = await _fails(url, Route(), {})
        assert failure.message.startswith(f"team: the certificate of {server.url} is not trusted: ")
        assert "ca_file in providers.yaml" in failure.message
        assert not failure.retryable
        ways: dict[Trust, str] = {"bundled": ", or set trust: system there", "system": ""}
        for trust, other in ways.items():
            message = (await _fails(url, Route(trust=trust), {"SSL_CERT_FILE": str(file)})).message
            assert f"not trusted by trust: {trust}: " in message
            assert message.endswith(f"as ca_file in providers.yaml{other}")


@pytest.mark.skipif(sys.platform != "linux", reason="the store is not told by a variable there")
async def test_the_store_of_the_system(
    authority: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # OpenSSL takes this variable of the process for the store of the system.
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.write(tmp_path / "ca.pem")))
    async with authority.server() as server, open_http({}) as http:
        assert await _ask(http, server.base_url, Route(trust="system")) == b"over TLS"
        with pytest.raises(ModelFailure, match="is not trusted"):
            await _ask(http, server.base_url)


async def test_a_file_that_has_another_authority_is_named(
    authority: Authority, tmp_path: Path
) -> None:
    other = Authority(trustme.CA())
    file = other.write(tmp_path / "other.pem")
    async with authority.server() as server:
        configured = Route(ca=other.pem, ca_file=str(file))
        failure = await _fails(server.base_url, configured, {"SSL_CERT_FILE": "/no/such"})
        assert f"is not trusted by ca_file {file}: " in failure.message
        failure = await _fails(server.base_url, Route(), {"SSL_CERT_FILE": str(file)})
        assert f"is not trusted by SSL_CERT_FILE {file}: " in failure.message


async def test_a_server_that_has_a_certificate_for_another_host(authority: Authority) -> None:
    async with authority.server() as server, proxy_to(server.port) as proxy:
        route = Route(proxy=Secret(f"http://127.0.0.1:{proxy.port}"), ca=authority.pem)
        message = (await _fails("https://other.test", route, {})).message
        assert "Hostname mismatch" in message


async def test_providers_of_one_host_go_their_own_ways(authority: Authority) -> None:
    async with authority.server() as server, open_http({}) as http:
        assert await _ask(http, server.base_url, Route(ca=authority.pem)) == b"over TLS"
        with pytest.raises(ModelFailure):
            await _ask(http, server.base_url)


async def test_parameters_of_the_url_are_sent_and_not_shown() -> None:
    query = {"api-version": Secret("2026-01-01"), "sig": Secret("a b/c+d=secret")}
    async with chat_server() as server, open_http({}) as http:
        said = b'{"error": {"message": "sig a b/c+d=secret, a%20b%2Fc%2Bd%3Dsecret is old"}}'
        server.reply(Reply((said,), status=400))
        provider = Provider("team", server.base_url, api="gemini", query=query)
        with pytest.raises(ModelFailure) as caught:
            await list_models(http, provider)
        assert server.requests[0].path == (
            "/v1/models?pageSize=1000&api-version=2026-01-01&sig=a+b%2Fc%2Bd%3Dsecret"
        )
        assert "secret" not in caught.value.message
        assert "secret" not in repr(provider)
