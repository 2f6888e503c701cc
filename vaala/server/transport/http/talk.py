"""`Talk`: the requests of one connection over plain HTTP, one after the other."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

import h11
import trio

from vaala.server.transport import limits
from vaala.server.transport.guard import Guard
from vaala.server.transport.head import Head, read_head
from vaala.server.transport.http.answer import (
    SECURITY_HEADERS,
    Answer,
    error_answer,
    refused_answer,
)
from vaala.server.transport.http.site import Site
from vaala.server.transport.refusal import Refusal
from vaala.server.transport.stream import ClientStream
from vaala.server.wire import PeerInfo
from vaala_protocol.errors import Refused

log = logging.getLogger(__name__)

_ALLOWED = ("GET", "HEAD")


class Talk:
    """Ends after a request that asks for it, after too many, and when the client is silent."""

    def __init__(
        self,
        stream: ClientStream,
        connection: h11.Connection,
        site: Site,
        guard: Guard,
        peer: PeerInfo,
        trust: Callable[[], None],
    ) -> None:
        """``trust`` is called when a request has shown the token."""
        self._stream = stream
        self._connection = connection
        self._site = site
        self._guard = guard
        self._peer = peer
        self._trust = trust

    async def run(self, first: Head) -> None:
        """Answer requests, beginning with one whose place was checked.

        Raises `Refusal` for one that ends the connection, and as trio's streams do.
        """
        head: Head | None = first
        for left in reversed(range(limits.HTTP_REQUESTS_MAX)):
            if head is None:
                return
            await self._skip_body()
            answer = await self._answer(head)
            await self._send(head, answer, last=left == 0)
            if self._connection.our_state is not h11.DONE:
                return
            self._connection.start_next_cycle()
            head = await read_head(self._stream, self._connection, within_s=limits.HTTP_IDLE_S)
            if head is not None:
                self._guard.check_place(head, self._peer.address, browsers=not self._stream.unix)

    async def _skip_body(self) -> None:
        """Read a body and forget it: nothing here takes one. Raises `Refusal`."""
        size = 0
        with trio.move_on_after(limits.BODY_S):
            while True:
                try:
                    event = self._connection.next_event()
                except h11.RemoteProtocolError as error:
                    raise Refusal(400, f"the body is not HTTP/1.1: {error}") from None
                match event:
                    case h11.NEED_DATA:
                        if self._connection.they_are_waiting_for_100_continue:
                            raise Refusal(417, "no request needs a body here: leave it out")
                        self._connection.receive_data(await self._stream.receive_some())
                    case h11.Data():
                        size += len(event.data)
                        if size > limits.BODY_BYTES_MAX:
                            text = f"a body has at most {limits.BODY_BYTES_MAX} bytes"
                            raise Refusal(413, text)
                    case _:
                        return
        raise Refusal(408, f"the body did not come within {limits.BODY_S:g} seconds")

    async def _answer(self, head: Head) -> Answer:
        path = unquote(head.path, errors="replace")
        found = self._site.find(path)
        if found is None:
            return self._site.nothing_at(path)
        route, rest = found
        if head.method not in _ALLOWED:
            allowed = (("Allow", ", ".join(_ALLOWED)),)
            text = f"{route.path} can be read, and nothing else: use {' or '.join(_ALLOWED)}"
            return error_answer(405, text, allowed)
        if not route.open:
            self._guard.check_token(head, self._peer.address)
            self._trust()
        try:
            with trio.fail_after(limits.HTTP_ANSWER_S):
                return await route.handle(head, rest)
        except Refused as error:
            return refused_answer(error)
        except trio.TooSlowError:
            return error_answer(504, f"no answer within {limits.HTTP_ANSWER_S:g} seconds")
        except Exception:
            trace = secrets.token_hex(4)
            log.exception("a request over HTTP failed (trace %s)", trace)
            return error_answer(500, f"a bug in the server; its log has it as trace {trace}")

    async def _send(self, head: Head, answer: Answer, *, last: bool) -> None:
        headers = [*answer.headers, *SECURITY_HEADERS, ("Content-Length", str(len(answer.body)))]
        if last:
            headers.append(("Connection", "close"))
        response = h11.Response(
            status_code=answer.status, headers=headers, reason=HTTPStatus(answer.status).phrase
        )
        data = self._connection.send(response) or b""
        if answer.body and answer.status != 304 and head.method != "HEAD":
            data += self._connection.send(h11.Data(data=answer.body)) or b""
        data += self._connection.send(h11.EndOfMessage()) or b""
        with trio.move_on_after(limits.HTTP_ANSWER_S):
            await self._stream.send_all(data)
            return
        raise trio.BrokenResourceError("the client does not read the answer")
