"""`Observer`: who is told what the runtime does, for traces and metrics. This one tells nobody.

The runtime calls it and knows nothing else of telemetry. It is told names, numbers and states, and
never what a prompt, an answer, an argument or a result says. Its contexts may be left by any
exception, a cancel included; they let it pass, and none of them waits for anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, TypeAlias

from msgspec import Struct

from vaala_protocol.settings import Usage

Gauge: TypeAlias = Literal["conversations", "clients"]
"""What there is at a moment: open conversations, connected clients."""


class Work:
    """A piece of work that runs. What is known only at its end is told here."""

    __slots__ = ()

    def ended(self, state: str, reason: str = "") -> None:
        """Say how it ended, in the words of the protocol ("completed", "done", "error")."""

    def used(self, model: str, usage: Usage) -> None:
        """Say which tokens a model call cost; counted once for each call."""


class TurnWork(Struct, frozen=True):
    """A turn that begins."""

    conversation_id: str
    session_id: str
    turn_id: str
    agent: str
    parent_turn_id: str | None = None
    """The turn that spawned the session, for that of a sub-agent."""


class ModelWork(Struct, frozen=True):
    """A model call that begins; ``attempt`` counts from 1."""

    provider: str
    model: str
    step: int
    attempt: int = 1


class ToolWork(Struct, frozen=True):
    """A tool call that begins to run."""

    call_id: str
    tool: str


class Observer:
    """Tells nobody, and costs next to nothing. What really observes is derived from it."""

    def turn(self, work: TurnWork) -> AbstractContextManager[Work]:
        """Hold around the whole of a turn, its clean-up included."""
        return _UNSEEN

    def model_call(self, work: ModelWork) -> AbstractContextManager[Work]:
        """Hold around one attempt, from the request to the end of the answer."""
        return _UNSEEN

    def tool_call(self, work: ToolWork) -> AbstractContextManager[Work]:
        """Hold around the run of a call, without the wait for its approval."""
        return _UNSEEN

    def append(self, session_id: str, entries: int) -> AbstractContextManager[Work]:
        """Hold around an append of this many entries, until they are durable. Of any task."""
        return _UNSEEN

    def gauges(self, gauges: Mapping[Gauge, Callable[[], int]]) -> AbstractContextManager[None]:
        """Read these numbers now and then while the block runs, from any thread."""
        return nullcontext()

    def trace_id(self) -> str | None:
        """Return the trace that the current task is part of, in hex, for its log lines."""
        return None


_UNSEEN = nullcontext(Work())
