"""Refusals as JSON-RPC errors, and back: the class travels as ``data.code``."""

from __future__ import annotations

from typing import Any

import msgspec

from vaala_protocol import errors
from vaala_protocol.base import Malformed, Value
from vaala_protocol.errors import BadRequest, Failed, Refused
from vaala_protocol.limits import ERROR_CHARACTERS_MAX

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
"""JSON-RPC 2.0, section 5.1; -32000 to -32099 are left to us."""

NUMBERS: dict[type[Refused], int] = {
    errors.Refused: -32000,
    errors.NotFound: -32001,
    errors.NotPending: -32002,
    errors.Busy: -32003,
    errors.Overloaded: -32004,
    errors.NotDurable: -32005,
    errors.Unreadable: -32006,
    errors.Stopping: -32007,
    errors.TimedOut: -32008,
    errors.Incompatible: -32009,
    errors.Outdated: -32010,
    errors.ModelUnreachable: -32011,
    errors.BadRequest: INVALID_PARAMS,
    errors.UnknownMethod: METHOD_NOT_FOUND,
    errors.InvalidMessage: INVALID_REQUEST,
    errors.Failed: INTERNAL_ERROR,
}
_BY_CODE = {kind.code: kind for kind in NUMBERS}
_BY_NUMBER = {number: kind for kind, number in NUMBERS.items()} | {
    PARSE_ERROR: errors.InvalidMessage
}


class ErrorData(Value, frozen=True, kw_only=True):
    code: str
    """The kind of refusal: one of the table of errors, or one of a newer server."""
    field: str = ""
    """The parameter that is wrong, as in ``content[0].text``."""
    trace: str = ""
    """Finds the traceback in the log of the server."""


class ErrorBody(Value, frozen=True, kw_only=True):
    """The ``error`` of an answer."""

    code: int
    message: str
    data: ErrorData


class _ForeignError(msgspec.Struct):
    """An error as anybody may send it: ``data`` is theirs to choose."""

    code: int | float
    message: str = ""
    data: msgspec.Raw = msgspec.Raw(b"null")


def error_body(error: Refused, number: int | None = None) -> ErrorBody:
    """Return a refusal as a JSON-RPC error; a class of another package goes as its base does."""
    if number is None:
        number = next(NUMBERS[kind] for kind in type(error).__mro__ if kind in NUMBERS)
    text = str(error)
    return ErrorBody(
        code=number,
        message=text if len(text) <= ERROR_CHARACTERS_MAX else f"{text[:ERROR_CHARACTERS_MAX]}...",
        data=ErrorData(
            code=error.code,
            field=error.field if isinstance(error, BadRequest) else "",
            trace=error.trace if isinstance(error, Failed) else "",
        ),
    )


def refusal(raw: msgspec.Raw | bytes) -> Refused | Malformed:
    """Return the refusal that an ``error`` of an answer stands for.

    A code that is not known makes a `Refused` (or what the number says) that carries the code.
    An error that is no JSON-RPC error makes a `Malformed`.
    """
    try:
        body = msgspec.json.decode(raw, type=_ForeignError)
    except (msgspec.DecodeError, RecursionError) as error:
        return Malformed(f"the error of an answer: {error}")
    data = _data(body.data)
    kind: type[Any] | None = None if data is None else _BY_CODE.get(data.code)
    if kind is None:
        kind = _BY_NUMBER.get(int(body.code), Refused)
    made: Refused
    if issubclass(kind, BadRequest):
        made = kind(body.message, field="" if data is None else data.field)
    elif kind is Failed:
        made = Failed(body.message, trace="" if data is None else data.trace)
    else:
        made = kind(body.message)
    if data is not None and data.code != made.code:
        made.code = data.code
    return made


def _data(raw: msgspec.Raw) -> ErrorData | None:
    try:
        return msgspec.json.decode(raw, type=ErrorData)
    except (msgspec.DecodeError, RecursionError):
        return None
