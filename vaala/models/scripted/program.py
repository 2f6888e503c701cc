"""What a script is compiled to: a flat list of operations, and the place in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec import Struct

from vaala.models.base import FinishReason
from vaala.models.limits import SCRIPT_OPERATIONS_MAX
from vaala.models.scripted.template import Expression, Template
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import ErrorKind, Usage


class ScriptedCall(Struct, frozen=True):
    tool: str
    arguments: Any
    """A structure with `Template`s in it; a bare `Template` is the text of the arguments."""
    name: str
    """Of its result."""


class ScriptedFailure(Struct, frozen=True):
    kind: ErrorKind
    message: str
    retryable: bool
    retry_after_s: float | None = None
    status: int | None = None
    times: int | None = None


class Pace(Struct, frozen=True):
    """How the pieces of an answer come."""

    chunk_chars: int
    delay_s: float
    pace_s: float


class Answer(Struct, frozen=True):
    """One model call's answer."""

    say: Template
    think: Template
    calls: tuple[ScriptedCall, ...]
    pace: Pace
    fail: ScriptedFailure | None = None
    """Before anything is said."""
    cut: ScriptedFailure | None = None
    """After everything is said."""
    hang: bool = False
    gate: str | None = None
    finish: FinishReason | None = None
    usage: Usage | None = None


class Branch(Struct, frozen=True):
    """Go on when the expression gives text, else at ``otherwise``."""

    when: Expression
    otherwise: int


class Jump(Struct, frozen=True):
    to: int


class Enter(Struct, frozen=True):
    """Begin a repeat; with no round to run, go on at ``past``."""

    times: int
    past: int


class Again(Struct, frozen=True):
    """The end of a repeat: back to ``start`` while there are rounds left."""

    start: int
    times: int


Operation: TypeAlias = Answer | Branch | Jump | Enter | Again


class Place(Struct, frozen=True):
    """Where in the program; ``rounds`` has a number, from 1, for each repeat around it."""

    operation: int = 0
    rounds: tuple[int, ...] = ()


class Program(Struct, frozen=True):
    operations: tuple[Operation, ...]
    window_tokens: int | None
    digest: int
    """Tells a place in this script from one in another, or in an older version of it."""

    def next_answer(
        self, place: Place, gives_text: Callable[[Expression, Place], bool]
    ) -> tuple[Answer, Place] | None:
        """Run from ``place`` to the next answer; return it and where it stands.

        None at the end of the script. Raises `BadRequest` for a script that runs in circles.
        """
        at, rounds = place.operation, place.rounds
        for _ in range(SCRIPT_OPERATIONS_MAX):
            if at >= len(self.operations):
                return None
            match self.operations[at]:
                case Answer() as answer:
                    return answer, Place(at, rounds)
                case Branch(when, otherwise):
                    at = at + 1 if gives_text(when, Place(at, rounds)) else otherwise
                case Jump(to):
                    at = to
                case Enter(times, past):
                    at, rounds = (at + 1, (*rounds, 1)) if times > 0 else (past, rounds)
                case Again(start, times):
                    if rounds[-1] < times:
                        at, rounds = start, (*rounds[:-1], rounds[-1] + 1)
                    else:
                        at, rounds = at + 1, rounds[:-1]
        raise BadRequest(
            f"the script ran {SCRIPT_OPERATIONS_MAX} branches and repeats without an answer"
        )
