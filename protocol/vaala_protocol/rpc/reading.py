"""From bytes to envelopes and typed parameters; all that can be wrong with them has a class here.

Unreadable text, nesting that no stack holds, bytes that are no UTF-8: `NotJson`. JSON that is no
message: `NotAMessage`. Parameters of another shape: `BadRequest`, which names the field.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec
from msgspec import UNSET, Raw, UnsetType

from vaala_protocol.base import Malformed
from vaala_protocol.errors import BadRequest
from vaala_protocol.rpc.incoming import Id
from vaala_protocol.rpc.newer import read_newer
from vaala_protocol.rpc.problems import bad_params, explain
from vaala_protocol.rpc.wire import Envelope, OddEnvelope

T = TypeVar("T")

_ENVELOPE = msgspec.json.Decoder(Envelope)
_NOTHING = Raw(b"{}")
_NULL = Raw(b"null")


class NotJson(Exception):
    """The text is no JSON."""


class NotAMessage(Exception):
    """JSON, but no request, notification or answer; ``id`` is what it can be answered under."""

    def __init__(self, reason: str, *, id: Id = None, answer: bool = False) -> None:
        super().__init__(reason)
        self.id = id
        self.answer = answer
        """It looks like an answer: it gets none, or two sides would never end."""


def is_array(data: bytes) -> bool:
    """Tell from the first character whether JSON text is an array."""
    return (data[:1].strip() or data.lstrip()[:1]) == b"["


def read_members(data: bytes) -> list[Raw]:
    """Return the members of an array, unread; raises `NotJson`."""
    try:
        return msgspec.json.decode(data, type=list[Raw])
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotJson(str(error)) from error


def read_envelope(data: bytes | Raw) -> Envelope:
    """Read one message; raises `NotJson`, `NotAMessage`. Its inside is checked as JSON, too."""
    try:
        return _ENVELOPE.decode(data)
    except msgspec.ValidationError as error:
        raise _odd(data, str(error)) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise NotJson(str(error)) from error


def read_params(method: str, raw: Raw | UnsetType, kind: type[T]) -> T:
    """Return parameters as their type; raises `BadRequest`.

    ``null`` stands for no parameters, as some clients write it.
    """
    if raw is UNSET or raw == _NULL:
        raw = _NOTHING
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        if bytes(memoryview(raw)[:1]) != b"{":
            raise BadRequest(
                f"{method}: params must be an object with a member for each parameter"
            ) from error
        raise bad_params(method, kind, str(error)) from error
    except RecursionError as error:
        raise BadRequest(f"{method}: {error}") from error


def read_sent(raw: Raw | UnsetType, kind: type[T]) -> T:
    """Return what a server sent: a result, or the parameters of a notification.

    What only a newer server knows is kept as unknown; raises `Malformed` for the rest.
    """
    if raw is UNSET:
        raw = _NULL
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        try:
            return read_newer(raw, kind)
        except Malformed:
            raise Malformed(str(error)) from error
    except RecursionError as error:
        raise Malformed(str(error)) from error


def _odd(data: bytes | Raw, problem: str) -> NotJson | NotAMessage:
    """Tell what JSON is that does not read as an envelope; its inside may be broken, too."""
    try:
        odd = msgspec.json.decode(data, type=OddEnvelope)
    except msgspec.ValidationError:
        return _no_object(data)
    except (msgspec.DecodeError, RecursionError) as error:
        return NotJson(str(error))
    is_answer = odd.method is UNSET and not (odd.result is UNSET and odd.error is UNSET)
    field, text = explain(Envelope, problem)
    return NotAMessage(f"{field}: {text}", id=_id(odd.id), answer=is_answer)


def _no_object(data: bytes | Raw) -> NotJson | NotAMessage:
    try:
        msgspec.json.decode(data, type=Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        return NotJson(str(error))
    return NotAMessage("a message is an object")


def _id(raw: Raw | UnsetType) -> Id:
    """Return an id when it is one that can be sent back, else None."""
    if raw is UNSET:
        return None
    try:
        id: Id = msgspec.json.decode(raw, type=int | float | str | None)
    except (msgspec.DecodeError, RecursionError):
        return None
    return id
