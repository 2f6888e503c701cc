"""What `Peer.receive` finds in a message: a closed union."""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from vaala_protocol.base import Malformed
from vaala_protocol.errors import Refused
from vaala_protocol.methods.base import Notification, Request

Id: TypeAlias = int | float | str | None
"""The id of a request, as its sender chose it; it is sent back as it came."""


class Call(msgspec.Struct, frozen=True):
    """A request: it wants exactly one `Peer.answer` or `Peer.refuse` with this id."""

    id: Id
    method: str
    params: Request[Any]


class Note(msgspec.Struct, frozen=True):
    """A notification, or a request whose sender wants no answer; it gets none."""

    method: str
    params: Request[Any] | Notification


class Answer(msgspec.Struct, frozen=True):
    """The answer to a request of ours: its result, or the error that ended it.

    `Malformed`: there was a result, but not of the type that the method has here.
    """

    id: int
    result: Any = None
    error: Refused | Malformed | None = None


class Reply(msgspec.Struct, frozen=True):
    """A message to send back: what came was wrong, and nobody else needs to know."""

    data: bytes


class Ignored(msgspec.Struct, frozen=True):
    """Something that is no request and fits nothing here: a late answer, a notification that is
    not known or not well formed. It is never answered; ``reason`` is for the log."""

    reason: str
    method: str | None = None


Incoming: TypeAlias = Call | Note | Answer | Reply | Ignored
