"""Plain HTTP at the front door."""

from __future__ import annotations

import json
import logging
import socket
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.server.transport.doors import TOKEN, ask_on, open_door, read_all, site
from vaala.server.transport import limits
from vaala.server.transport.front_door import FrontDoor
from vaala.server.transport.guard import Guard
from vaala.server.wire import PeerInfo
from vaala.version import VERSION


async def test_health_needs_no_token_and_tells_no_secret() -> None:
    async with open_door() as door:
        answer = await door.ask("/healthz", authorization="")
        assert answer.status == 200
        assert json.loads(answer.body) == {"ok": True, "version": VERSION, "protocol": "1.0"}


@pytest.mark.parametrize(
    ("target", "method", "params"),
    [
        ("/api/v1/status", "runtime/status", {}),
        ("/api/v1/models", "model/list", {}),
        ("/api/v1/models/a%2Fb", "model/get", {"name": "a/b"}),
        ("/api/v1/models/a/b", "model/get", {"name": "a/b"}),
        ("/api/v1/agents", "agent/list", {}),
        ("/api/v1/agents/default", "agent/get", {"name": "default"}),
        ("/api/v1/executors/local", "executor/get", {"name": "local"}),
        ("/api/v1/config", "config/list", {}),
        ("/api/v1/config/models.yaml", "config/get", {"file": "models.yaml"}),
        ("/api/v1/conversations", "conversation/list", {"query": {}}),
        (
            "/api/v1/conversations?limit=7&cursor=c&tag=x",
            "conversation/list",
            {"limit": 7, "cursor": "c", "query": {"tag": "x"}},
        ),
        (
            "/api/v1/conversations?query=caf%C3%A9+x&limit=20",
            "conversation/search",
            {"text": "café x"},
        ),
        ("/api/v1/conversations/1", "conversation/get", {"conversationId": "1"}),
        (
            "/api/v1/conversations/1/items?before=9",
            "session/items",
            {"conversationId": "1", "before": 9},
        ),
    ],
)
async def test_views_ask_the_methods_of_the_api(
    target: str, method: str, params: dict[str, object]
) -> None:
    async with open_door() as door:
        answer = await door.ask(target)
        assert answer.status == 200
        assert json.loads(answer.body) == {"method": method, "params": params}
        assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "target",
    ["/api/v1", "/api/v1/models", "/api/v1/tools", "/api/v1/config", "/api/v1/conversations/1"],
)
async def test_views_need_the_token(target: str) -> None:
    async with open_door() as door:
        assert (await door.ask(target, authorization="")).status == 401
        assert (await door.ask(target)).status == 200


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("/api/v1/conversations?limit=0", "limit must be 1 to 200"),
        ("/api/v1/conversations?limit=many", "'many'"),
        ("/api/v1/conversations?limit=%D9%A3", "whole number"),
        ("/api/v1/conversations?archived=yes", "true or false"),
        ("/api/v1/conversations?colour=red", "no parameter 'colour'"),
        ("/api/v1/conversations?limit=1&limit=2", "given twice"),
        ("/api/v1/models?limit=1", "there are: none"),
    ],
)
async def test_a_wrong_parameter_is_named(target: str, wrong: str) -> None:
    async with open_door() as door:
        answer = await door.ask(target)
        error = json.loads(answer.body)["error"]
        assert (answer.status, error["code"]) == (400, "bad_request")
        assert wrong in error["message"]


async def test_what_is_not_there_is_told_with_what_there_is() -> None:
    async with open_door() as door:
        nothing = await door.ask("/nope", authorization="")
        assert nothing.status == 404
        assert "/api/v1/conversations/..." in json.loads(nothing.body)["error"]["message"]
        missing = await door.ask("/api/v1/models/missing")
        assert missing.status == 404
        assert json.loads(missing.body)["error"]["code"] == "not_found"
        assert (await door.ask("/api/v1/conversations/1/moods")).status == 404


@pytest.mark.parametrize(
    ("target", "more", "status", "code"),
    [
        ("/api/v1/models", {"authorization": ""}, 401, "unauthorized"),
        ("/api/v1/models", {"host": "evil.example"}, 421, "misdirected_request"),
        ("/api/v1/models", {"origin": "https://evil.example"}, 403, "forbidden"),
        ("/api/v1/models?token=x", {}, 400, "bad_request"),
        ("/api/v1/vaala", {}, 426, "upgrade_required"),
        ("/nope", {}, 404, "not_found"),
    ],
)
async def test_whatever_is_refused_is_json_of_one_shape(
    target: str, more: dict[str, Any], status: int, code: str
) -> None:
    async with open_door() as door:
        answer = await door.ask(target, **more)
        error = json.loads(answer.body)["error"]
        assert (answer.status, error["code"]) == (status, code)
        assert error["message"]


async def test_a_bug_in_a_view_ends_one_answer(caplog: pytest.LogCaptureFixture) -> None:
    async with open_door() as door, await door.connect() as stream:
        answer = await ask_on(stream, door.host, "/api/v1/models/crash")
        assert answer.status == 500
        trace = json.loads(answer.body)["error"]["message"].split()[-1]
        assert trace in caplog.text
        assert "a bug in a view" in caplog.text
        assert b"a bug in a view" not in answer.body
        assert (await ask_on(stream, door.host, "/healthz")).status == 200


async def test_the_page_is_there_with_headers_that_protect_it() -> None:
    async with open_door() as door:
        leads = await door.ask("/", authorization="")
        assert (leads.status, leads.headers["location"]) == (307, "/web/v1/")
        assert (await door.ask("/web/v1", authorization="")).headers["location"] == "/web/v1/"
        page = await door.ask("/web/v1/", authorization="")
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert b"vaala --help" in page.body
        assert (await door.ask("/web/v1/style.css", authorization="")).status == 200
        policy = page.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'none'" in policy
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["referrer-policy"] == "no-referrer"


async def test_a_page_that_is_known_is_not_sent_again() -> None:
    async with open_door() as door:
        first = await door.ask("/web/v1/")
        again = await door.ask("/web/v1/", if_none_match=f'"x", {first.headers["etag"]}')
        assert (again.status, again.body) == (304, b"")
        other = await door.ask("/web/v1/", if_none_match='"x"')
        assert (other.status, other.body) == (200, first.body)


@pytest.mark.parametrize(
    "path", ["../answer.py", "..%2Fanswer.py", "%2e%2e/answer.py", "/etc/passwd", "%00"]
)
async def test_no_path_leads_out_of_the_page(path: str) -> None:
    async with open_door() as door:
        assert (await door.ask(f"/web/v1/{path}")).status in (400, 404)


async def test_a_head_is_answered_without_a_body() -> None:
    async with open_door() as door, await door.connect() as stream:
        line = f"HEAD /web/v1/ HTTP/1.1\r\nHost: {door.host}\r\nConnection: close\r\n\r\n"
        await stream.send_all(line.encode())
        head, _, body = (await read_all(stream)).partition(b"\r\n\r\n")
        assert body == b""
        assert b"content-length: 0" not in head.lower()


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "BREW"])
async def test_nothing_can_be_changed_over_http(method: str) -> None:
    async with open_door() as door:
        answer = await door.ask("/api/v1/models", method)
        assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_a_body_is_ignored_up_to_a_limit() -> None:
    async with open_door() as door, await door.connect() as stream:
        small = await ask_on(stream, door.host, "/healthz", body=b"x" * 1_000)
        assert small.status == 200
        assert (await ask_on(stream, door.host, "/healthz")).status == 200
        large = await ask_on(stream, door.host, "/healthz", "POST", b"x" * 1_000_000)
        assert large.status == 413


async def test_many_requests_share_a_connection_and_may_come_at_once() -> None:
    async with open_door() as door:
        stream = await door.connect()
        request = f"GET /healthz HTTP/1.1\r\nHost: {door.host}\r\n\r\n".encode()
        last = request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        await stream.send_all(request * 19 + last)
        async with stream:
            assert (await read_all(stream)).count(b'"ok":true') == 20
        await door.quiet()
        assert door.served == 1


async def test_a_later_request_is_guarded_like_the_first() -> None:  # H7-2
    async with open_door() as door, await door.connect() as stream:
        assert (await ask_on(stream, door.host, "/healthz")).status == 200
        refused = await ask_on(stream, "attacker.test", "/healthz")
        assert refused.status == 421
        assert await read_all(stream) == b""


async def test_a_websocket_path_asks_for_an_upgrade() -> None:  # H8-2
    async with open_door() as door:
        answer = await door.ask("/api/v1/vaala", authorization="")
        assert (answer.status, answer.headers["upgrade"]) == (426, "websocket")


async def test_a_connection_without_requests_is_closed(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Over a socket pair: what is sent is there at once, so the clock never jumps too far."""
    ours, theirs = socket.socketpair()
    front = FrontDoor(Guard(TOKEN, ["x"]), _no_websockets, site)
    theirs.setblocking(False)
    client = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
    async with client, trio.open_nursery() as nursery:
        nursery.start_soon(front.serve, ours, PeerInfo("test", local=True))
        assert (await ask_on(client, "x", "/healthz")).status == 200
        began = trio.current_time()
        assert await read_all(client) == b""
        assert trio.current_time() - began == pytest.approx(limits.HTTP_IDLE_S)


async def test_refusals_of_http_are_no_errors_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with open_door() as door:
        for target in ("/nope", "/api/v1/models/missing", "/api/v1/conversations?limit=x"):
            await door.ask(target)
    assert [one for one in caplog.records if one.levelno >= logging.WARNING] == []


async def _no_websockets(wire: object, peer: PeerInfo) -> None:
    raise AssertionError("nobody asked for a WebSocket")
