"""`JsonView`: every update as one line of JSON on stdout.

A line is a frame (it has ``event``), or an object with one key: ``snapshot`` (first, and again
when this reader fell behind), ``note`` (one line about the run), ``result`` (a prompt is done; a
few frames may follow), ``error`` (the command could not begin).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import msgspec

from vaala.cli.output import STDOUT, Output
from vaala.cli.progress import Update
from vaala_protocol.base import encode
from vaala_protocol.events import Frame, ItemChanged
from vaala_protocol.items import AssistantMessage, Item, Reasoning, ToolCall
from vaala_protocol.state import LivePart, SessionSnapshot, Snapshot, TurnInfo


class JsonView:
    def __init__(self, output: Output) -> None:
        self._output = output

    def update(self, update: Update) -> None:
        match update:
            case Snapshot():
                self._line({"snapshot": public_snapshot(update)})
            case Frame(event=ItemChanged(item=item) as event):
                shown = msgspec.structs.replace(event, item=public_item(item))
                self._line(msgspec.structs.replace(update, event=shown))
            case Frame():
                self._line(update)

    def note(self, text: str) -> None:
        self._line({"note": text})

    def end(self, text: str, turn: TurnInfo, code: int) -> None:
        self._line({"result": {"text": text, "exitCode": code, "turn": turn}})

    def asking(self) -> AbstractContextManager[Callable[[str], None]]:
        return self._output.asking()

    def _line(self, value: Any) -> None:
        self._output.put(STDOUT, encode(value).decode() + "\n")


def error_line(message: str, code: int) -> str:
    return encode({"error": {"message": message, "exitCode": code}}).decode()


def public_item(item: Item) -> Item:
    """Return the item without what only its provider may read again."""
    if isinstance(item, AssistantMessage | Reasoning | ToolCall) and item.private is not None:
        return msgspec.structs.replace(item, private=None)
    return item


def public_snapshot(snapshot: Snapshot) -> Snapshot:
    sessions = tuple(map(_public_session, snapshot.sessions))
    return msgspec.structs.replace(snapshot, sessions=sessions)


def _public_session(session: SessionSnapshot) -> SessionSnapshot:
    return msgspec.structs.replace(
        session,
        items=tuple(map(public_item, session.items)),
        live=tuple(map(_public_part, session.live)),
    )


def _public_part(part: LivePart) -> LivePart:
    return msgspec.structs.replace(part, item=public_item(part.item))
