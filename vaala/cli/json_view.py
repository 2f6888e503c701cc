"""`JsonView`: every update as one line of JSON on stdout.

A line is a frame (it has ``event``), or an object with one key: ``snapshot`` (first, and again
when this reader fell behind), ``note`` (one line about the run), ``result`` (a prompt is done; a
few frames may follow), ``error`` (the command could not begin).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from vaala.cli.output import STDOUT, Output
from vaala.cli.progress import Update
from vaala_protocol.base import encode
from vaala_protocol.events import Frame
from vaala_protocol.public import public_frame, public_snapshot
from vaala_protocol.state import Snapshot, TurnInfo


class JsonView:
    def __init__(self, output: Output) -> None:
        self._output = output

    def update(self, update: Update) -> None:
        match update:
            case Snapshot():
                self._line({"snapshot": public_snapshot(update)})
            case Frame():
                self._line(public_frame(update))

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


def conversation_line(conversation_id: str) -> str:
    return encode({"conversation": conversation_id}).decode()
