"""One request and its answer under our deadlines. The errors of httpx are mapped here alone.

The deadlines are kept with trio's clock: httpx knows a limit for each read, but none for the time
to the first byte, which spans several. Imported through `vaala.models.http` only.
"""

from __future__ import annotations

import math
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx
import trio

from vaala.models.base import ModelFailure
from vaala.models.failures import failure_of_kind
from vaala.models.http import Call
from vaala.models.limits import DRAIN_S, POOL_WAIT_S

_SENDING = "http11.send_request_headers.started"
"""httpcore's trace event for: connected, and the request begins to leave."""

_HEADERS = {
    "accept": "*/*",
    # Compressed streams arrive in lumps.
    "accept-encoding": "identity",
    "user-agent": "vaala",
}

_ERRORS = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, UnicodeEncodeError)
"""What becomes a `ModelFailure`, without its cause: that may hold the request, and with it the
key."""


_NO_AUTHORITY = (18, 19, 20, 21)
"""What X509_verify_cert says of a certificate whose authority it does not know
(docs.openssl.org/master/man3/X509_STORE_CTX_get_error)."""

E = TypeVar("E", bound=BaseException)


class Answer:
    """An answer whose status and headers are there and whose body is still to be read."""

    def __init__(self, response: httpx.Response, call: Call, first_byte_at: float) -> None:
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._call = call
        self._pieces = _pieces(response)
        self._deadline = first_byte_at
        self._begun = False

    async def read(self, by: float = math.inf) -> bytes | None:
        """Return the next bytes of the body, None at its end.

        Raises `ModelFailure` when it breaks, or stays silent longer than the deadline, and
        ``TimeoutError`` at the time ``by`` of trio's clock. Cancel: the connection is closed at
        once.
        """
        # One scope for all limits: it is the dearest thing that is done for each piece (9 us).
        try:
            with trio.CancelScope(deadline=min(self._deadline, by)):
                piece = await anext(self._pieces, None)
                self._deadline = trio.current_time() + self._call.deadlines.silence_s
                self._begun = True
                return piece
        except _ERRORS as error:
            raise _failure(self._call, error) from None
        if by < self._deadline:
            raise TimeoutError
        raise failure_of_kind(self._call.origin, "network", self._silence(), retryable=True)

    def _silence(self) -> str:
        if not self._begun:
            return _no_first_byte(self._call)
        return f"silent for {self._call.deadlines.silence_s:g} s in the middle of the answer"

    async def read_all(self, bytes_max: int) -> bytes:
        """Return the body, cut at ``bytes_max``."""
        body = bytearray()
        while len(body) < bytes_max:
            piece = await self.read()
            if piece is None:
                break
            body += piece
        return bytes(body[:bytes_max])

    async def keep(self, bytes_max: int) -> None:
        """Read the body, cut at ``bytes_max``, so that `read` gives it however late it is asked."""
        body = await self.read_all(bytes_max)
        await self.abandon()
        self._pieces, self._deadline = _kept(body), math.inf

    async def drain(self) -> None:
        """Wait a moment for the end of the body, so that the connection can be used again."""
        with trio.move_on_after(DRAIN_S):
            try:
                while await self.read() is not None:
                    pass
            except ModelFailure:
                return

    async def abandon(self) -> None:
        """End the iterators inside httpx, which must not be left to the garbage collector.

        The cancelled read goes through all their layers, and closes the connection on its way.
        """
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                async for _ in self._pieces:
                    pass
            except (httpx.HTTPError, httpx.StreamError):
                return


@asynccontextmanager
async def exchange(transport: httpx.AsyncHTTPTransport, call: Call) -> AsyncGenerator[Answer]:
    """Send the request; the body has the answer. Leaving closes what was not read to its end.

    Raises `ModelFailure` when there is no answer: no connection, none in time, not in HTTP.
    """
    response, first_byte_at = await _send(transport, call)
    answer = Answer(response, call, first_byte_at)
    try:
        yield answer
    finally:
        try:
            await answer.abandon()
        finally:
            await response.aclose()


async def _send(transport: httpx.AsyncHTTPTransport, call: Call) -> tuple[httpx.Response, float]:
    """Return the answer and the time by which its first byte is due."""
    first_byte_s = call.deadlines.first_byte_s
    scope = trio.CancelScope()

    async def trace(event: str, info: dict[str, Any]) -> None:
        if event == _SENDING:
            scope.deadline = trio.current_time() + first_byte_s

    try:
        timeout = httpx.Timeout(None, connect=call.deadlines.connect_s, pool=POOL_WAIT_S)
        request = httpx.Request(
            "GET" if call.body is None else "POST",
            call.url,
            headers={**_HEADERS, **call.headers},
            content=call.body,
            extensions={"trace": trace, "timeout": timeout.as_dict()},
        )
        if request.url.userinfo:
            user = httpx.BasicAuth(request.url.username, request.url.password)
            next(user.auth_flow(request))  # it sets the header
        with scope:
            return await transport.handle_async_request(request), scope.deadline
    except _ERRORS as error:
        raise _failure(call, error) from None
    raise failure_of_kind(call.origin, "network", _no_first_byte(call), retryable=True)


def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """Return the body as it arrives: directly, or decoded for a server that compresses anyway."""
    if "content-encoding" in response.headers:
        return response.aiter_bytes()
    assert isinstance(response.stream, httpx.AsyncByteStream)
    return aiter(response.stream)


async def _kept(body: bytes) -> AsyncGenerator[bytes]:
    yield body


def _no_first_byte(call: Call) -> str:
    return f"no first byte within {call.deadlines.first_byte_s:g} s"


def _failure(call: Call, error: Exception) -> ModelFailure:
    """Say what went wrong, with the server and the way out, which the lower library leaves out."""
    server = _server(call.url)
    retryable = True
    match error:
        case httpx.ConnectTimeout():
            text = f"no connection to {_place(call)} within {call.deadlines.connect_s:g} s"
        case httpx.PoolTimeout():
            text = f"all connections to {server} were in use for {POOL_WAIT_S:g} s"
        case httpx.ConnectError():
            text, retryable = _no_connection(call, error)
        case httpx.ProxyError():
            where = "of providers.yaml" if call.route.proxy else "of the environment"
            text = f"the proxy {where} for {server} refused: {error}"
            retryable = False
        case httpx.RemoteProtocolError() | httpx.ReadError() | httpx.WriteError():
            text = f"the connection to {server} broke: {error or 'closed'}"
        case httpx.UnsupportedProtocol() | httpx.InvalidURL():
            text = f"a request to {server} cannot be made: {error}"
            return failure_of_kind(call.origin, "invalid_request", text)
        case httpx.LocalProtocolError() | UnicodeEncodeError():
            # Its text quotes the header, and the header is the key.
            text = f"a header for {server} is not legal in HTTP: is the key whole and on one line?"
            return failure_of_kind(call.origin, "invalid_request", text)
        case _:
            text = f"{server}: {error or type(error).__name__}"
    return failure_of_kind(call.origin, "network", text, retryable=retryable)


def _no_connection(call: Call, error: httpx.ConnectError) -> tuple[str, bool]:
    """Say why there is no connection, and whether another try can help."""
    place = _place(call)
    if (untrusted := _cause(error, ssl.SSLCertVerificationError)) is not None:
        return _not_trusted(call, place, untrusted), False
    reason = str(error).strip()
    if "WRONG_VERSION_NUMBER" in reason or (_cause(error, ssl.SSLError) and not reason):
        return f"no connection to {place}: it does not speak TLS; is it http:// there?", False
    if _cause(error, ConnectionRefusedError):
        # On this machine nothing is on its way: who starts a server there will start it by hand.
        local = httpx.URL(call.url).host in ("127.0.0.1", "::1", "localhost")
        return f"no connection to {place}: nothing listens there; is the server running?", not local
    reason = f": {reason}" if reason else ""
    return f"no connection to {place}{reason}; is the server running, is the base URL right?", True


def _not_trusted(call: Call, place: str, error: ssl.SSLCertVerificationError) -> str:
    counts = f" by {call.trusted}" if call.trusted else ""
    text = f"the certificate of {place} is not trusted{counts}: {error.verify_message}"
    if error.verify_code not in _NO_AUTHORITY:
        return text
    way_out = "name the file that has its authority as ca_file in providers.yaml"
    other = "" if call.route.trust == "system" else ", or set trust: system there"
    return f"{text}; {way_out}{other}"


def _place(call: Call) -> str:
    server, source = _server(call.url), call.origin.url_from
    return f"{server} (from {source})" if source else server


def _cause(error: BaseException | None, kind: type[E]) -> E | None:
    """Return the error of a kind that is behind this one."""
    if error is None or isinstance(error, kind):
        return error
    if isinstance(error, BaseExceptionGroup):
        found = (_cause(one, kind) for one in error.exceptions)
        return next((one for one in found if one is not None), None)
    return _cause(error.__cause__ or error.__context__, kind)


def _server(url: str) -> str:
    """Return the origin of a URL, without the user and password that it may hold."""
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return "the server"
    return f"{parts.scheme}://{parts.host}" + ("" if parts.port is None else f":{parts.port}")
