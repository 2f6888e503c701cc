"""What the exchange of HTTP does for every model: it takes what a server makes of the protocol."""

from __future__ import annotations

import base64
import gzip

from vaala.models.base import Deadlines
from vaala.models.failures import Origin
from vaala.models.http import Call, open_http
from vaala.testing import Reply, chat_server

TEXT = b"data: a line of an answer\n\n" * 20


async def answer_of(url: str) -> bytes:
    call = Call(url, {"content-type": "text/plain"}, b"?", Deadlines(), Origin("test"))
    async with open_http({}) as http, http.exchange(call) as answer:
        return await answer.read_all(1 << 20)


async def test_a_server_that_compresses_unasked_is_understood() -> None:
    packed = gzip.compress(TEXT)
    async with chat_server() as server:
        server.answer(lambda _: Reply((packed,), headers=(("content-encoding", "gzip"),)))
        assert await answer_of(server.base_url) == TEXT
        assert server.requests[0].headers["accept-encoding"] == "identity"


async def test_the_user_and_password_of_a_url_are_sent_as_a_header() -> None:
    async with chat_server() as server:
        server.answer(lambda _: Reply((TEXT,)))
        url = server.base_url.replace("http://", "http://me:pa%20ss@")
        assert await answer_of(url) == TEXT
        expected = base64.b64encode(b"me:pa ss").decode()
        assert server.requests[0].headers["authorization"] == f"Basic {expected}"
        assert "me" not in server.requests[0].headers["host"]
