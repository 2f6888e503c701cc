"""Who is let in: the token, Host and Origin."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest
import trio

from tests.vaala.server.transport.doors import TOKEN, ask_on, open_door, read_all, upgrade
from vaala.discovery import PROOF_HEADER, client_proof, is_proof, new_challenge
from vaala.server.transport.guard import Alarm, hosts_of

EVIL = "https://evil.example"


async def test_a_page_of_another_site_gets_nothing_even_with_the_token() -> None:  # H7-1
    async with open_door() as door:
        assert (await door.upgrade(f"Origin: {EVIL}")).startswith(b"HTTP/1.1 403 ")
        assert (await door.ask("/api/v1/models", origin=EVIL)).status == 403
        assert (await door.ask("/healthz", origin="null")).status == 403


async def test_without_an_origin_the_token_opens() -> None:  # H7-1
    async with open_door() as door:
        assert await door.still_serves()


async def test_the_own_page_and_configured_ones_may_come() -> None:
    async with open_door(origins=["https://ours.example"]) as door:
        assert (await door.ask("/healthz", origin=f"http://{door.host}")).status == 200
        assert (await door.ask("/healthz", origin="https://OURS.example")).status == 200
        assert (await door.ask("/healthz", origin=f"http://localhost:{door.port}")).status == 403


@pytest.mark.parametrize(
    "host", ["attacker.test", "attacker.test:{port}", "127.0.0.1:1", "localhost", "{port}", ""]
)
async def test_a_name_that_was_made_to_point_here_is_refused(host: str) -> None:  # H7-2
    async with open_door() as door:
        async with await door.connect() as stream:
            line = f"Host: {host.format(port=door.port)}\r\n"
            await stream.send_all(f"GET /healthz HTTP/1.1\r\n{line}\r\n".encode())
            assert (await read_all(stream)).startswith(b"HTTP/1.1 421 ")
        async with await door.connect() as stream:
            await stream.send_all(upgrade(host.format(port=door.port)))
            assert (await read_all(stream)).startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
async def test_names_of_this_machine_are_taken(name: str) -> None:
    async with open_door() as door:
        assert (await door.ask("/healthz", host=f"{name}:{door.port}")).status == 200


def test_names_that_were_allowed_are_taken_with_the_port_or_without() -> None:
    hosts = hosts_of([("192.0.2.7", 8790)], ["box.example", "proxy.example:443"])
    assert {"box.example", "box.example:8790", "proxy.example:443", "192.0.2.7:8790"} <= hosts
    assert not {"proxy.example", "proxy.example:8790", "localhost"} & hosts
    assert "localhost" in hosts_of([("127.0.0.1", 80)], [])


async def test_a_plain_post_of_a_page_is_refused() -> None:  # H7-2
    async with open_door() as door:
        form = {"content_type": "text/plain", "authorization": ""}
        from_page = await door.ask("/api/v1/models", "POST", b"{}", origin=EVIL, **form)
        assert from_page.status == 403
        without_origin = await door.ask("/api/v1/models", "POST", b"{}", **form)
        assert (without_origin.status, without_origin.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1], f"{TOKEN}x", "tökén"])
async def test_without_the_right_token_there_is_no_upgrade(token: str) -> None:
    async with open_door() as door:
        answer = await door.upgrade(token=token)
        assert answer.startswith(b"HTTP/1.1 401 ")
        assert b'WWW-Authenticate: Bearer realm="vaala"' in answer
        assert TOKEN.encode() not in answer
        shown = f"Bearer {token}" if token.isascii() else "Basic eDp5"
        assert (await door.ask("/api/v1/models", authorization=shown.strip())).status == 401


@pytest.mark.parametrize(
    "target",
    [
        f"/api/v1/models?token={TOKEN}",
        "/api/v1/models?access_token=guess",
        "/api/v1/models?TOKEN=",
        f"/api/v1/models/{TOKEN}",
        f"/web/v1/?x={TOKEN}",
    ],
)
async def test_a_token_in_a_url_is_refused_and_not_logged(
    target: str, caplog: pytest.LogCaptureFixture
) -> None:  # H7-4
    caplog.set_level(logging.DEBUG)
    async with open_door() as door:
        refused = await door.ask(target)
        assert refused.status == 400
        error = json.loads(refused.body)["error"]
        assert (error["code"], "URL" in error["message"]) == ("bad_request", True)
    assert caplog.records
    assert TOKEN not in caplog.text
    assert "guess" not in caplog.text


async def test_wrong_tokens_lock_nobody_out_and_are_told_once(
    caplog: pytest.LogCaptureFixture,
) -> None:  # H7-5
    async with open_door() as door:
        for _ in range(500):
            assert (await door.upgrade(token="nonsense")).startswith(b"HTTP/1.1 401 ")
            answer = await door.ask("/api/v1/models", authorization="Bearer nonsense")
            assert answer.status == 401
        assert await door.still_serves()
    assert [record.getMessage().split(",")[0] for record in caplog.records] == [
        "refused: a wrong token"
    ]
    assert "nonsense" not in caplog.text


async def test_a_burst_is_counted_when_the_next_one_is_told(
    caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:  # H7-5
    alarm = Alarm()
    for _ in range(1_000):
        alarm.ring("a wrong token", "1.2.3.4:5")
    await trio.sleep(61)
    alarm.ring("a wrong token", "1.2.3.4:6")
    assert [record.getMessage() for record in caplog.records] == [
        "refused: a wrong token, from 1.2.3.4:5",
        "refused: a wrong token, from 1.2.3.4:6, and 999 more before it",
    ]


async def test_a_client_can_make_sure_of_the_server_without_the_token() -> None:
    challenge = new_challenge()
    shown = client_proof(TOKEN, challenge)
    async with open_door() as door, door.websocket(authorization=shown) as client:
        answered = dict(client.handshake_headers)[PROOF_HEADER.encode()].decode()
        assert is_proof(answered, TOKEN, challenge)
        await client.send_message("hello")
        assert await client.get_message() == "hello"


async def test_a_server_proves_nothing_to_those_it_does_not_know() -> None:
    challenge = new_challenge()
    async with open_door() as door:
        for shown in (client_proof("wrong", challenge), f"Vaala {challenge}.", "Vaala .00"):
            answer = await door.upgrade(f"Authorization: {shown}", token="")
            assert answer.startswith(b"HTTP/1.1 40")
            assert PROOF_HEADER.encode() not in answer.lower()


async def test_the_token_gets_no_proof_for_anybody_could_make_it_then() -> None:
    async with open_door() as door, door.websocket() as client:
        assert PROOF_HEADER.encode() not in dict(client.handshake_headers)


async def test_a_proof_is_for_websockets_alone() -> None:
    shown = client_proof(TOKEN, new_challenge())
    async with open_door() as door:
        assert (await door.ask("/api/v1/models", authorization=shown)).status == 401


async def test_a_challenge_that_is_too_long_is_refused() -> None:
    async with open_door() as door:
        answer = await door.upgrade(f"Authorization: Vaala {'x' * 1_000}.00", token="")
        assert answer.startswith(b"HTTP/1.1 400 ")


async def test_on_a_unix_socket_the_name_does_not_matter_but_the_token_does(
    tmp_path: Path,
) -> None:
    async with open_door(path=tmp_path / "s") as door:
        for token, status in (("x", 401), (TOKEN, 200)):
            async with await trio.open_unix_socket(str(door.path)) as stream:
                given = {"authorization": f"Bearer {token}"}
                answer = await ask_on(stream, "whatever", "/api/v1/models", more=given)
                assert answer.status == status
