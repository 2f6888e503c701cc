"""Messages to a session: requests of clients, and reports of its turn and other children."""

from __future__ import annotations

from dataclasses import dataclass

from vaala import limits
from vaala.actor import Command
from vaala.changes import Change
from vaala.text import cut
from vaala_protocol.content import Content
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings
from vaala_protocol.state import CommandEnded, Delivery, InputInfo, InputSource, TurnInfo


@dataclass(frozen=True, slots=True)
class Send(Command[InputInfo]):
    """Accept input. Durable before it is answered; the same client id again finds its input."""

    client_id: str
    source: InputSource
    delivery: Delivery = "queue"
    settings: Settings | None = None


@dataclass(frozen=True, slots=True)
class EditInput(Command[InputInfo]):
    """Replace the content of an input that has not been taken yet."""

    input_id: str
    content: tuple[Content, ...]


@dataclass(frozen=True, slots=True)
class WithdrawInput(Command[InputInfo]):
    input_id: str


@dataclass(frozen=True, slots=True)
class MoveInput(Command[InputInfo]):
    """Put an input before another one; None: at the end."""

    input_id: str
    before: str | None


@dataclass(frozen=True, slots=True)
class Resume(Command[None]):
    """Release the held queue, in order."""


@dataclass(frozen=True, slots=True)
class AnswerApproval(Command[None]):
    approval_id: str
    option: str
    by: str
    reason: str = ""
    interrupt: bool = False


@dataclass(frozen=True, slots=True)
class Configure(Command[Settings]):
    """Change what is given; the answer is the settings in force."""

    settings: Settings


@dataclass(frozen=True, slots=True)
class Record(Command[None]):
    """From the turn: write these changes down. Raises `NotDurable`; they are kept all the same."""

    changes: tuple[Change, ...]


@dataclass(frozen=True, slots=True)
class Flush(Command[None]):
    """From the turn: try again to write what could not be written. Raises `NotDurable`."""


@dataclass(frozen=True, slots=True)
class BeginStep(Command[tuple[Item, ...]]):
    """From the turn: take what waits for it; the answer is the new items of step ``number``."""

    turn_id: str
    number: int


@dataclass(frozen=True, slots=True)
class Finish(Command[tuple[Item, ...]]):
    """From the turn: close it, in one append with ``changes``.

    With ``unless_steered`` a waiting steer keeps it open: then only the changes are written, and
    the answer is the items of its next step, ``number``. An empty answer: the turn is closed.
    """

    turn: TurnInfo
    before: TurnInfo
    changes: tuple[Change, ...]
    number: int
    unless_steered: bool


@dataclass(frozen=True, slots=True)
class TurnGone(Command[None]):
    """From the turn's task: it has ended, clean-up included."""

    turn_id: str


@dataclass(frozen=True, slots=True)
class CommandGone(Command[None]):
    """From a background command: it has ended."""

    ended: CommandEnded


@dataclass(frozen=True, slots=True)
class ChildDone(Command[None]):
    """From a child session: a turn of it has ended."""

    session_id: str
    turn: TurnInfo
    text: str


@dataclass(frozen=True, slots=True)
class TakeResult(Command[None]):
    """From a call that has waited for a child: its result need not come by the queue."""

    session_id: str


@dataclass(frozen=True, slots=True)
class Nudge(Command[None]):
    """From a timer: try again what the disk refused."""


@dataclass(frozen=True, slots=True)
class TurnResult:
    """How a turn ended, and what the agent said last."""

    turn: TurnInfo
    text: str


def result_text(result: TurnResult) -> str:
    """Return how an agent's turn ended and what it said, for the model that waits for it."""
    text = cut(result.text, limits.RESULT_BYTES_MAX // 2)
    turn = result.turn
    if turn.state == "completed" and turn.stop_reason == "end_turn":
        return text or "(The agent finished without a word.)"
    how = f"The agent's work ended early: {turn.state}. {turn.message}".strip()
    return f"{how}\n\n{text}".strip()
