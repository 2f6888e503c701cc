"""Which proxy a request goes through."""

from __future__ import annotations

import pytest

from vaala.models.base import Deadlines, ModelFailure
from vaala.models.failures import Origin
from vaala.models.http import Call, open_http
from vaala.models.provider import Route
from vaala.models.proxy import proxy_for, proxy_of
from vaala.models.secret import Secret

PROXY = "http://proxy:3128"


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:11434/v1", "http://127.9.9.9", "http://localhost:8080", "http://[::1]:1",
        "https://LOCALHOST", "http://api.localhost", "http://0.0.0.0:8080",
    ],
)  # fmt: skip
def test_loopback_is_always_direct(url: str) -> None:  # B10-1
    assert proxy_for(url, {"HTTP_PROXY": PROXY, "HTTPS_PROXY": PROXY, "ALL_PROXY": PROXY}) is None


@pytest.mark.parametrize(
    ("url", "environ", "proxy"),
    [
        ("https://api.x.com", {"HTTPS_PROXY": PROXY}, PROXY),
        ("https://api.x.com", {"https_proxy": PROXY, "HTTPS_PROXY": "http://other"}, PROXY),
        ("https://api.x.com", {"HTTP_PROXY": PROXY}, None),
        ("http://api.x.com", {"HTTP_PROXY": "proxy:3128"}, PROXY),
        ("http://api.x.com", {"ALL_PROXY": PROXY}, PROXY),
        ("https://api.x.com", {"HTTPS_PROXY": " "}, None),
        ("https://api.x.com", {}, None),
    ],
)
def test_by_scheme(url: str, environ: dict[str, str], proxy: str | None) -> None:
    assert proxy_for(url, environ) == proxy


@pytest.mark.parametrize(
    ("url", "exempt", "direct"),
    [
        ("https://api.x.com", "x.com", True),
        ("https://api.x.com", ".x.com", True),
        ("https://api.x.com", "*.x.com", True),
        ("https://x.com", ".x.com", True),
        ("https://notx.com", "x.com", False),
        ("https://api.x.com", "a.com, x.com", True),
        ("https://api.x.com", "*", True),
        ("https://api.x.com:8443", "x.com:8443", True),
        ("https://api.x.com:8443", "x.com:443", False),
        ("http://10.1.2.3", "10.0.0.0/8", True),
        ("http://11.1.2.3", "10.0.0.0/8", False),
        ("http://[fd00::1]:80", "[fd00::1]", True),
        ("https://api.x.com", "not/a/network", False),
    ],
)
def test_no_proxy(url: str, exempt: str, direct: bool) -> None:
    environ = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "NO_PROXY": exempt}
    assert (proxy_for(url, environ) is None) == direct


def test_what_a_provider_says_goes_before_the_environment() -> None:
    environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": "exempt.com"}
    for host in ("x.com", "exempt.com"):
        url = f"https://{host}"
        assert proxy_of(url, Route(proxy=Secret("http://own")), environ) == "http://own"
        assert proxy_of(url, Route(proxy=Secret("")), environ) is None
    assert proxy_of("https://x.com", Route(), environ) == PROXY
    assert proxy_of("http://localhost:1", Route(proxy=Secret("http://own")), environ) is None


async def refused(url: str, **environ: str) -> str:
    async with open_http(environ) as http:
        with pytest.raises(ModelFailure) as caught:
            async with http.exchange(Call(url, {}, None, Deadlines(), Origin("p"))):
                raise AssertionError("no request may be made")
    assert (caught.value.kind, caught.value.retryable) == ("invalid_request", False)
    return str(caught.value)


async def test_what_cannot_be_used_is_named() -> None:
    proxy = await refused("https://x.com", HTTPS_PROXY="gopher://user:hunter2@x")
    assert "HTTPS_PROXY" in proxy
    assert "hunter2" not in proxy
    for url in ("ftp://x", "https://", "http://[::1", "http://x:port"):
        assert f"{url!r} is no URL of a server" in await refused(url)
    assert "SSL_CERT_FILE=/no/such" in await refused("https://x.com", SSL_CERT_FILE="/no/such")
