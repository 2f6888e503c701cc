"""The services of a client, as its connection implements them, and the offer that names them.

What every method may raise: `vaala_protocol.errors.Refused` kinds for an error that the client
answered (`NotFound`: it does not have the file, the terminal, the tool; `Stopping`: the connection
has ended), `vaala_protocol.base.Malformed` for an answer that cannot be read. An implementation
keeps no deadline and need not notice the end of its connection: `Services` does both, by
cancelling the call. Cancel: the client is told that its answer is not wanted any more; what it was
asked to do may have been done.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:  # a runtime without a server has no use for the methods of the protocol
    from vaala_protocol.methods.client import (
        OfferedTool,
        TerminalExit,
        TerminalOutputResult,
        ToolRunResult,
    )


class ClientFiles(ABC):
    """Text files of this machine as the person sees them, with changes that are not saved yet.

    Paths are absolute. Text goes and comes as the client has it: when it hides a byte order mark
    or the kind of line ends, it puts them back.
    """

    @abstractmethod
    async def read(self, path: str) -> str: ...

    @abstractmethod
    async def write(self, path: str, text: str) -> None:
        """Replace a file or make it, with its directories; as durable as the client makes it."""


class TerminalCommand(Struct, frozen=True):
    """A command for a terminal of the client: a program and its arguments, not a shell line."""

    command: str
    arguments: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]


class ClientTerminals(ABC):
    @abstractmethod
    async def start(self, command: TerminalCommand) -> str:
        """Run a command in a terminal of its own; return the terminal's id."""

    @abstractmethod
    async def output(self, terminal_id: str) -> TerminalOutputResult:
        """Wait for output, and return what came since the last time; or how the command ended.

        Asked for again only when it was answered. Cancel: what was on its way may be lost.
        """

    @abstractmethod
    async def end(self, terminal_id: str) -> TerminalExit:
        """End the command with everything it started, and forget the terminal."""


class ClientTools(ABC):
    @property
    @abstractmethod
    def offered(self) -> Sequence[OfferedTool]: ...

    @abstractmethod
    async def run(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolRunResult:
        """Run a tool; ``name`` is the one that the client gave it."""


class Elicitor(ABC):
    @abstractmethod
    async def elicit(self, question_id: str, text: str, choices: Sequence[str]) -> str | None:
        """Put a question to the person and wait for the answer; None: they will not answer.

        Cancel: the question is taken back, such as when it was answered elsewhere.
        """


class Offer(Struct, frozen=True):
    """What one connection serves for one conversation; None: not that."""

    client: str
    """Who it is, for people: the name that the client gave itself."""
    files: ClientFiles | None = None
    reads: bool = True
    writes: bool = True
    """Whether ``files`` reads and writes; without one of them the disk does."""
    terminals: ClientTerminals | None = None
    tools: ClientTools | None = None
    elicitor: Elicitor | None = None
