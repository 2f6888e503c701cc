"""`TextView`: the answer on stdout, everything else as short lines on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from vaala.cli.answer_text import AnswerText
from vaala.cli.notes import Notes, wants_dim
from vaala.cli.output import STDERR, STDOUT, Output
from vaala.cli.progress import Update
from vaala.tools.text import clean
from vaala_protocol.events import Frame, ItemChanged, ItemDelta, ItemDropped, Unsaved
from vaala_protocol.items import AssistantMessage, Item
from vaala_protocol.state import SessionSnapshot, Snapshot, TurnInfo


class TextView:
    """Shows the root session's messages whole, and of its children only what they do."""

    def __init__(
        self, root_id: str, output: Output, is_ours: Callable[[Item], bool] = lambda _: True
    ) -> None:
        """``is_ours`` tells which messages are an answer to this command; no other is shown."""
        self._root_id = root_id
        self._is_ours = is_ours
        self._output = output
        self._on_terminal = sys.stdout.isatty()
        self._one_screen = _same_file(sys.stdout.fileno(), sys.stderr.fileno())
        self._began = False
        self._messages: set[str] = set()
        self._newest_at = 0
        """The place of the root session's newest item."""
        self._ended_at = 0
        """Up to this place answers have ended: a later snapshot repeats them."""
        self._answer = AnswerText(self._put_answer, self._begins_again)
        self._notes = Notes(self._put_note, dim=wants_dim())

    def update(self, update: Update) -> None:
        match update:
            case Snapshot(sessions=sessions):
                for session in sessions:
                    self._snapshot(session)
                self._began = True
            case Frame(event=ItemChanged(item=item)):
                self._item(item)
            case Frame(event=ItemDelta(item_id=item_id) as delta):
                if item_id in self._messages and delta.field == "text":
                    self._answer.more(item_id, delta.index, delta.text)
            case Frame(event=ItemDropped(item_id=item_id)):
                self._answer.void(item_id)
            case Frame(event=Unsaved(reason=reason)):
                self.note(f"not saved yet: {reason}" if reason else "saved again")
            case _:
                pass

    def note(self, text: str) -> None:
        self._notes.line(text)

    @contextmanager
    def asking(self) -> Generator[Callable[[str], None]]:
        """See `View`; a question begins on a line of its own."""
        with self._output.asking() as say:
            if self._one_screen and not self._answer.at_line_start:
                say("\n")
                self._answer.broken()
            yield say

    def end(self, text: str, turn: TurnInfo, code: int) -> None:
        """The answer to one prompt is complete."""
        self._answer.end()
        self._messages.clear()
        self._ended_at = self._newest_at

    def _snapshot(self, session: SessionSnapshot) -> None:
        """The first one shows what was before this run; a later one what was missed."""
        if session.info.id == self._root_id:
            # A server that was killed may give the place of what it had not saved once more.
            self._newest_at = 0
        for item in session.items:
            if not self._began:
                self._place(item)
                if isinstance(item, AssistantMessage):
                    self._answer.skip(item.id, len(item.text))
                self._notes.skip(item)
            else:
                self._item(item)
        for part in session.live:
            self._item(part.item)
            if part.item.id in self._messages and part.field == "text":
                self._answer.more(part.item.id, part.next_index - len(part.text), part.text)

    def _item(self, item: Item) -> None:
        self._place(item)
        is_root = item.session_id == self._root_id
        if not (isinstance(item, AssistantMessage) and is_root):
            self._notes.item(item, child=not is_root)
        elif item.at > self._ended_at and self._is_ours(item):
            self._messages.add(item.id)
            self._answer.more(item.id, 0, item.text)

    def _place(self, item: Item) -> None:
        if item.session_id == self._root_id:
            self._newest_at = max(self._newest_at, item.at)

    def _put_answer(self, text: str) -> None:
        # What a model says is data: on a terminal it must not move the cursor or set the title.
        self._output.put(STDOUT, clean(text) if self._on_terminal else text)

    def _begins_again(self) -> None:
        self.note("the model was asked again and says something else: the answer begins again")

    def _put_note(self, line: str) -> None:
        if self._one_screen and not self._answer.at_line_start:
            line = "\n" + line
        self._output.put(STDERR, line)
        if self._one_screen:
            self._answer.broken()


def _same_file(one: int, other: int) -> bool:
    """Tell whether both lead to the same terminal, file or pipe, as after ``2>&1``."""
    return os.path.samestat(os.fstat(one), os.fstat(other))
