"""`Terminals`: runs commands for a server, and `LiveTerminals`, those that it has started here."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import trio
from msgspec import Struct

from vaala.client import limits
from vaala_protocol.errors import NotFound, Overloaded
from vaala_protocol.ids import new_id
from vaala_protocol.methods.client import TerminalExit, TerminalOutputResult

log = logging.getLogger(__name__)


class Terminals(Protocol):
    """Runs commands in terminals that the person sees."""

    async def start(
        self,
        command: str,
        arguments: Sequence[str],
        *,
        directory: str,
        environment: Mapping[str, str],
    ) -> str:
        """Run a command; return an id for its terminal."""
        ...

    async def output(self, terminal_id: str) -> TerminalOutputResult:
        """Wait for output, and return what came since the last time; or how the command ended."""
        ...

    async def end(self, terminal_id: str) -> TerminalExit:
        """End the command and everything it started, and forget the terminal."""
        ...


class Terminal(Struct, frozen=True):
    """One terminal: whose it is, and by which id he knows it."""

    conversation_id: str
    terminals: Terminals
    theirs: str


class LiveTerminals:
    """The terminals that the server of this connection knows, by our id for each: two offers may
    use the same. At most `limits.TERMINALS_MAX`."""

    def __init__(self) -> None:
        self._live: dict[str, Terminal] = {}

    def __len__(self) -> int:
        return len(self._live)

    def check_room(self) -> None:
        """Raise `Overloaded` when there is room for no other one."""
        if len(self._live) >= limits.TERMINALS_MAX:
            raise Overloaded(f"{limits.TERMINALS_MAX} terminals are open here: end some of them")

    def add(self, terminal: Terminal) -> str:
        """Add one and return our id for it."""
        ours = new_id()
        self._live[ours] = terminal
        return ours

    def get(self, terminal_id: str) -> Terminal:
        """Raises `NotFound`."""
        if terminal_id not in self._live:
            raise NotFound(f"no terminal {terminal_id}")
        return self._live[terminal_id]

    def take(self, terminal_id: str) -> Terminal:
        """Take one out for its end. Raises `NotFound`."""
        terminal = self.get(terminal_id)
        del self._live[terminal_id]
        return terminal

    def take_all(self, conversation_id: str | None = None) -> list[Terminal]:
        """Take out all of a conversation, or all there are."""
        taken = {
            ours: terminal
            for ours, terminal in self._live.items()
            if conversation_id in (None, terminal.conversation_id)
        }
        for ours in taken:
            del self._live[ours]
        return list(taken.values())


async def end_terminals(terminals: Iterable[Terminal]) -> None:
    """End terminals that the server cannot end any more, within `limits.TERMINAL_END_S`.

    Shielded, so that a program that ends leaves no commands behind. Never raises but what is no
    ``Exception``: whoever offered them is told by the log.
    """
    deadline = trio.current_time() + limits.TERMINAL_END_S
    with trio.CancelScope(shield=True, deadline=deadline) as scope:
        async with trio.open_nursery() as nursery:
            for terminal in terminals:
                nursery.start_soon(_end, terminal)
    if scope.cancelled_caught:
        log.warning("a terminal did not end within %g s", limits.TERMINAL_END_S)


async def _end(terminal: Terminal) -> None:
    try:
        await terminal.terminals.end(terminal.theirs)
    except Exception:
        log.exception("the terminal %s did not end", terminal.theirs)
