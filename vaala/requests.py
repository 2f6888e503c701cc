"""Messages to a session: requests of clients, and reports of its turn and other children."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from vaala import limits
from vaala.actor import Command
from vaala.changes import Change
from vaala.text import cut
from vaala_protocol.content import Content
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandEnded,
    Delivery,
    InputInfo,
    InputSource,
    TurnInfo,
    TurnResult,
)


class Send(Struct, Command[InputInfo], frozen=True):
    """Accept input. Durable before it is answered; the same client id again finds its input."""

    client_id: str
    source: InputSource
    delivery: Delivery = "queue"
    settings: Settings | None = None
    output_schema: dict[str, Any] | None = None


class EditInput(Struct, Command[InputInfo], frozen=True):
    """Replace the content of an input that has not been taken yet."""

    input_id: str
    content: tuple[Content, ...]


class WithdrawInput(Struct, Command[InputInfo], frozen=True):
    input_id: str


class MoveInput(Struct, Command[InputInfo], frozen=True):
    """Put an input before another one; None: at the end."""

    input_id: str
    before: str | None


class Resume(Struct, Command[None], frozen=True):
    """Release the held queue, in order."""


class Compact(Struct, Command[TurnInfo], frozen=True):
    """Begin a turn that replaces what was said by a summary, and does nothing else."""


class AnswerApproval(Struct, Command[None], frozen=True):
    approval_id: str
    option: str
    by: str
    reason: str = ""
    interrupt: bool = False


class AnswerQuestion(Struct, Command[None], frozen=True):
    """``answer`` None: the person does not want to answer."""

    question_id: str
    answer: str | None
    by: str


class Configure(Struct, Command[Settings], frozen=True):
    """Change what is given; the answer is the settings in force."""

    settings: Settings


FROM_STATE = (
    Send, EditInput, WithdrawInput, MoveInput, Resume, Compact, AnswerApproval, AnswerQuestion,
    Configure,
)  # fmt: skip
"""What is computed from the state: nothing may wait to be written, or be open, when that is done.
Reports bring changes that are kept whatever happens."""


class Record(Struct, Command[None], frozen=True):
    """From the turn: write these changes down. Raises `NotDurable`; they are kept all the same."""

    changes: tuple[Change, ...]


class Flush(Struct, Command[None], frozen=True):
    """From the turn: try again to write what could not be written. Raises `NotDurable`."""


class BeginStep(Struct, Command[tuple[Item, ...]], frozen=True):
    """From the turn: take what waits for it; the answer is the new items of step ``number``."""

    turn_id: str
    number: int


class WithdrawQuestion(Struct, Command[None], frozen=True):
    """From a call that asks no more: settle its question, unless it was answered meanwhile.

    Raises `NotDurable`; it is written down later then."""

    question_id: str


class Finish(Struct, Command[tuple[Item, ...]], frozen=True):
    """From the turn: close it, in one append with ``changes``.

    With ``unless_steered`` a waiting steer keeps it open: then only the changes are written, and
    the answer is the items of its next step, ``number``. An empty answer: the turn is closed.
    """

    turn: TurnInfo
    before: TurnInfo
    changes: tuple[Change, ...]
    number: int
    unless_steered: bool


class TurnGone(Struct, Command[None], frozen=True):
    """From the turn's task: it has ended, clean-up included."""

    turn_id: str


class CommandGone(Struct, Command[None], frozen=True):
    """From a background command: it has ended."""

    ended: CommandEnded


class ChildDone(Struct, Command[None], frozen=True):
    """From a child session: a turn of it has ended."""

    session_id: str
    turn: TurnInfo
    text: str


class TakeResult(Struct, Command[None], frozen=True):
    """From a call that has waited for a child: its result need not come by the queue."""

    session_id: str


class SettleUnstarted(Struct, Command[None], frozen=True):
    """From the parent that opens a child again: when it has had no turn, it will never have the
    one that it was made for. Raises `NotDurable`."""


class Nudge(Struct, Command[None], frozen=True):
    """From a timer or the children: try again what was refused, and look who waits."""


def result_text(result: TurnResult) -> str:
    """Return how an agent's turn ended and what it said, for the model that waits for it."""
    text = cut(result.text, limits.RESULT_BYTES_MAX // 2)
    turn = result.turn
    if turn.state == "completed" and turn.stop_reason == "end_turn":
        return text or "(The agent finished without a word.)"
    how = f"The agent's work ended early: {turn.state}. {turn.message}".strip()
    return f"{how}\n\n{text}".strip()
