"""`Peer`: one side of a JSON-RPC 2.0 connection, without I/O.

What comes in is given to `Peer.receive`, one message at a time; what it and the other methods
return is to be sent, in that order. Both sides use the same class: a server serves the methods of
`REQUESTS` and asks those of `CLIENT_REQUESTS`, a client the reverse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from msgspec import UNSET, Raw, UnsetType

from vaala_protocol import limits
from vaala_protocol.base import Malformed
from vaala_protocol.errors import BadRequest, InvalidMessage, Overloaded, Refused, UnknownMethod
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.methods.base import Notification, Request
from vaala_protocol.rpc.incoming import Answer, Call, Id, Ignored, Incoming, Note, Reply
from vaala_protocol.rpc.reading import (
    NotAMessage,
    NotJson,
    is_array,
    read_envelope,
    read_members,
    read_params,
    read_sent,
)
from vaala_protocol.rpc.refusals import INVALID_REQUEST, PARSE_ERROR, error_body, refusal
from vaala_protocol.rpc.serving import Batch, Serving
from vaala_protocol.rpc.wire import (
    Envelope,
    write_error,
    write_notification,
    write_request,
    write_result,
)

R = TypeVar("R")
Serves = Mapping[str, type[Request[Any]]]
Hears = Mapping[str, type[Notification]]

_SERVER_SERVES: Serves = {kind.method: kind for kind in REQUESTS}
_CLIENT_SERVES: Serves = {kind.method: kind for kind in CLIENT_REQUESTS}
_CLIENT_HEARS: Hears = {kind.method: kind for kind in NOTIFICATIONS}


def server_peer() -> Peer:
    """Return the server's side of a new connection."""
    return Peer(
        _SERVER_SERVES, {},
        message_bytes_max=limits.MESSAGE_BYTES_MAX, sent_bytes_max=limits.ANSWER_BYTES_MAX,
    )  # fmt: skip


def client_peer() -> Peer:
    """Return the client's side of a new connection."""
    return Peer(
        _CLIENT_SERVES, _CLIENT_HEARS,
        message_bytes_max=limits.ANSWER_BYTES_MAX, sent_bytes_max=limits.MESSAGE_BYTES_MAX,
    )  # fmt: skip


class Peer:
    """The state of one connection: which requests of either side wait for their answers.

    Nothing here waits, and no input raises. ``serves`` and ``hears`` are the requests and the
    notifications that this side takes, by method. Both sides have at most `limits.REQUESTS_MAX`
    requests open. A message that comes has at most ``message_bytes_max``; of those that are made
    here ``sent_bytes_max`` is what the other side takes.
    """

    def __init__(
        self, serves: Serves, hears: Hears, *, message_bytes_max: int, sent_bytes_max: int
    ) -> None:
        self._serves = serves
        self._hears = hears
        self._message_bytes_max = message_bytes_max
        self._sent_bytes_max = sent_bytes_max
        self._serving = Serving(sent_bytes_max)
        self._asked: dict[int, type[Any]] = {}
        self._last_id = 0

    @property
    def serving(self) -> int:
        """Requests of the other side that have no answer yet."""
        return len(self._serving)

    @property
    def asked(self) -> int:
        """Requests of this side that have no answer yet."""
        return len(self._asked)

    def receive(self, data: bytes | str) -> list[Incoming]:
        """Take a message (a text frame) in and return what it holds, in order.

        Wrong messages come back as a `Reply` with the error that JSON-RPC 2.0 has for them. A
        request whose id is that of one in work is refused, and does not touch the other.
        """
        try:
            text = data.encode() if isinstance(data, str) else _utf8(data)
            if len(text) > self._message_bytes_max:
                reason = f"a message of more than {self._message_bytes_max} bytes"
                return [_wrong(None, INVALID_REQUEST, reason)]
            if is_array(text):
                return self._take_batch(text)
            envelope = read_envelope(text)
        except (NotJson, UnicodeError) as error:
            return [_wrong(None, PARSE_ERROR, f"not JSON: {error}")]
        except NotAMessage as error:
            return _found(self._not_a_message(error, None))
        return _found(self._take(envelope, None))

    def ask(self, params: Request[R]) -> tuple[int, bytes]:
        """Return the id of a new request, and the message to send.

        Its `Answer` comes out of `receive` with this id. Raises `Overloaded` when too many are
        open, and `BadRequest` when the message is larger than the other side takes; then nothing
        was done.
        """
        if len(self._asked) >= limits.REQUESTS_MAX:
            raise Overloaded(f"{len(self._asked)} requests of this connection wait for answers")
        message = write_request(self._last_id + 1, params.method, params)
        if len(message) > self._sent_bytes_max:
            raise BadRequest(
                f"{params.method} would be a message of {len(message):,} bytes; at most "
                f"{self._sent_bytes_max:,} can be sent"
            )
        self._last_id += 1
        self._asked[self._last_id] = params.result
        return self._last_id, message

    def forget(self, id: int) -> None:
        """Expect no answer any more: when it comes it is `Ignored`."""
        self._asked.pop(id, None)

    def tell(self, notification: Notification) -> bytes:
        """Return a notification as a message; the same bytes can go to other connections."""
        return write_notification(notification)

    def answer(self, id: Id, result: object) -> bytes | None:
        """End a `Call` with its result and return what to send.

        None: it belongs to a batch that still waits for other answers. One that is larger than the
        other side takes is `Overloaded` instead. ``result`` can be a `msgspec.Raw`. Raises
        `KeyError` when no call with this id is open.
        """
        message = write_result(id, result)
        if len(message) > self._serving.room_bytes(id):
            text = (
                f"the answer of {len(message):,} bytes is more than a message holds: ask for less"
            )
            return self.refuse(id, Overloaded(text))
        return self._serving.settle(id, message)

    def refuse(self, id: Id, error: Refused) -> bytes | None:
        """End a `Call` with an error and return what to send; as with `answer`."""
        return self._serving.settle(id, write_error(id, error_body(error)))

    def _take(self, envelope: Envelope, batch: Batch | None) -> Incoming | None:
        """Return what an envelope is; None: it was refused, and its batch has the refusal."""
        id = None if envelope.id is UNSET else envelope.id
        if envelope.method is UNSET:
            if envelope.result is UNSET and envelope.error is UNSET:
                return self._take_neither(id, envelope.params, batch)
            return self._take_answer(id, envelope.result, envelope.error)
        if envelope.jsonrpc != "2.0":
            return _refused(id, InvalidMessage('jsonrpc: expected "2.0"'), batch)
        if envelope.id is UNSET:
            return self._take_note(envelope.method, envelope.params)
        if not _is_usable(id):
            text = f"id: up to {limits.ID_CHARACTERS_MAX} characters, or a number of 64 bits"
            return _refused(None, InvalidMessage(text), batch)
        return self._take_call(id, envelope.method, envelope.params, batch)

    def _take_call(
        self, id: Id, method: str, params: Raw | UnsetType, batch: Batch | None
    ) -> Incoming | None:
        if id in self._serving:
            return _refused(id, InvalidMessage(f"id: {id!r} is that of a request in work"), batch)
        if len(self._serving) >= limits.REQUESTS_MAX:
            text = f"{len(self._serving)} requests of this connection are in work; wait for some"
            return _refused(id, Overloaded(text), batch)
        kind = self._serves.get(method)
        if kind is None:
            name = method[: limits.METHOD_CHARACTERS_MAX]
            return _refused(id, UnknownMethod(f"there is no method {name!r}"), batch)
        try:
            typed = read_params(method, params, kind)
        except BadRequest as error:
            return _refused(id, error, batch)
        self._serving.add(id, batch)
        return Call(id, method, typed)

    def _take_note(self, method: str, params: Raw | UnsetType) -> Incoming:
        heard = self._hears.get(method)
        served = self._serves.get(method)
        name = method[: limits.METHOD_CHARACTERS_MAX]
        try:
            if heard is not None:
                return Note(method, read_sent(params, heard))
            if served is not None:
                return Note(method, read_params(method, params, served))
        except (BadRequest, Malformed) as error:
            reason = str(error)[: limits.ERROR_CHARACTERS_MAX]
            return Ignored(f"a notification that cannot be read: {reason}", name)
        return Ignored("a notification that is not known", name)

    def _take_answer(
        self, id: Id, result: Raw | UnsetType, error: Raw | UnsetType
    ) -> Answer | Ignored:
        kind = self._asked.pop(id, None) if isinstance(id, int) else None
        if not isinstance(id, int) or kind is None:
            return Ignored(f"an answer to no request of this side{_told(error)}")
        if error is not UNSET and bytes(error) != b"null":
            return Answer(id, error=refusal(error))
        try:
            return Answer(id, read_sent(result, kind))
        except Malformed as problem:
            return Answer(id, error=problem)

    def _take_neither(
        self, id: Id, params: Raw | UnsetType, batch: Batch | None
    ) -> Incoming | None:
        """Take a message without method, result and error: an answer, if it can be one."""
        asked = params is UNSET and isinstance(id, int) and id in self._asked
        if not asked:
            return _refused(id, InvalidMessage("method: it is required"), batch)
        return self._not_a_message(NotAMessage("it has no result", id=id, answer=True), batch)

    def _not_a_message(self, error: NotAMessage, batch: Batch | None) -> Incoming | None:
        if not error.answer:
            return _refused(error.id, InvalidMessage(str(error)), batch)
        if isinstance(error.id, int) and self._asked.pop(error.id, None) is not None:
            return Answer(error.id, error=Malformed(f"an answer that cannot be read: {error}"))
        return Ignored(f"an answer that cannot be read: {error}")

    def _take_batch(self, data: bytes) -> list[Incoming]:
        """Take the members of a batch in; the answers to its requests leave as one array."""
        if len(data) > limits.BATCH_BYTES_MAX:
            text = f"a batch of more than {limits.BATCH_BYTES_MAX} bytes"
            return [_wrong(None, INVALID_REQUEST, text)]
        members = read_members(data)
        if not 1 <= len(members) <= limits.BATCH_MESSAGES_MAX:
            text = f"a batch holds 1 to {limits.BATCH_MESSAGES_MAX} messages"
            return [_wrong(None, INVALID_REQUEST, text)]
        batch = Batch()
        found: list[Incoming] = []
        for member in members:
            try:
                found += _found(self._take(read_envelope(member), batch))
            except NotAMessage as error:
                found += _found(self._not_a_message(error, batch))
        whole = batch.whole()
        return found if whole is None else [*found, Reply(whole)]


def _utf8(data: bytes) -> bytes:
    """Return ``data``; raises `UnicodeDecodeError`, also for parts that are not read later."""
    data.decode()
    return data


def _found(taken: Incoming | None) -> list[Incoming]:
    return [] if taken is None else [taken]


def _is_usable(id: Id) -> bool:
    """Tell whether an id can be kept and sent back as it came."""
    if isinstance(id, str):
        return len(id) <= limits.ID_CHARACTERS_MAX
    return not isinstance(id, int) or -(2**63) <= id < 2**64  # more digits are no number to many


def _wrong(id: Id, number: int, text: str) -> Reply:
    return Reply(write_error(id, error_body(InvalidMessage(text), number)))


def _refused(id: Id, error: Refused, batch: Batch | None) -> Reply | None:
    """Answer a message that goes no further: at once, or in its batch."""
    answer = write_error(id if _is_usable(id) else None, error_body(error))
    if batch is None:
        return Reply(answer)
    batch.fill(batch.place(), answer)
    return None


def _told(error: Raw | UnsetType) -> str:
    """Quote an error that came without a request: the other side could not read a message."""
    return "" if error is UNSET else f": {refusal(error)}"
