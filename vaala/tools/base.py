"""`Tool`: what a model can call, and what a running call can reach."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from vaala.models.base import ToolSpec
from vaala.permissions.base import Access
from vaala_executors.process import Command, Exit
from vaala_executors.workspace import Workspace
from vaala_protocol.calls import CallDetails
from vaala_protocol.content import Content


class ToolFailure(Exception):
    """An expected failure of a call: its text is the result that the model gets."""

    def __init__(self, message: str, details: CallDetails | None = None) -> None:
        super().__init__(message)
        self.details = details


class ToolResult(Struct, frozen=True):
    content: tuple[Content, ...]
    details: CallDetails | None = None
    """The call's details with what the run told; None: as they were."""
    is_error: bool = False


class PreparedCall(Struct, frozen=True):
    """A call whose arguments are good: what it is, what it touches, and how to run it."""

    details: CallDetails
    title: str
    """One line for people."""
    access: Access
    run: Callable[[ToolContext], Awaitable[ToolResult]]
    """Raises `ToolFailure`. Cancel: ends what the call started, leaves no process behind."""


class RunningCommand(ABC):
    """A command of a session: first in the foreground of its call, later perhaps not."""

    @property
    @abstractmethod
    def id(self) -> str: ...

    @property
    @abstractmethod
    def command(self) -> str: ...

    @property
    @abstractmethod
    def exit(self) -> Exit | None:
        """How it ended; None while it runs."""

    @abstractmethod
    async def wait(self) -> Exit:
        """Wait for the end. Cancel: the command goes on."""

    @abstractmethod
    async def wait_output(self) -> None:
        """Return when there is output that `read_new` has not given, or at the end."""

    @abstractmethod
    def read_new(self) -> str:
        """Return the clean text since the last call, bounded, with exact numbers of what is cut."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Write to stdin; raises `ToolFailure` when nothing reads it.

        There is no terminal, so ^C (0x03) interrupts the command and ^D (0x04) closes its input.
        """

    @abstractmethod
    def to_background(self) -> None:
        """From here on it outlives its call, and its end is told to the session, once."""

    @abstractmethod
    async def end(self) -> Exit:
        """End the whole tree."""

    @property
    @abstractmethod
    def timed_out(self) -> bool:
        """Whether it was ended because its own time was up."""

    @property
    @abstractmethod
    def output_bytes(self) -> int: ...

    @property
    @abstractmethod
    def omitted_bytes(self) -> int:
        """Bytes of output that `read_new` has left out so far."""

    @property
    @abstractmethod
    def output_blob(self) -> str | None:
        """The blob with the whole output, when it was too large to be shown; known at the end."""

    @property
    @abstractmethod
    def note(self) -> str:
        """Why that blob does not have all of the output; empty when it has."""


class Commands(ABC):
    """The commands of one session. They live in the session's nursery and die with it."""

    @abstractmethod
    async def start(
        self,
        command: Command,
        *,
        text: str,
        workspace: Workspace,
        call_id: str,
        timeout_s: float | None = None,
    ) -> RunningCommand:
        """Start a command; raises `ToolFailure` naming what is not there, or the limit reached.

        After ``timeout_s`` its whole tree is ended, in the background too.
        """

    @abstractmethod
    def get(self, command_id: str) -> RunningCommand:
        """Return a command that runs or ended lately; raises `ToolFailure` that lists them."""


class Agents(Protocol):
    """What a call can do with other sessions; every error is a `ToolFailure`."""

    async def spawn(self, task: str, agent: str | None) -> str:
        """Start a child session on a task and return its id."""
        ...

    async def wait(self, session_id: str, timeout_s: float) -> str:
        """Return the text of the child's result; raises on a cycle, names a time-out."""
        ...


def _nobody(client: str) -> None:
    pass


async def _no_blob(key: str, offset: int, length: int) -> bytes:
    raise ToolFailure(f"there is no saved output {key!r}")


async def _no_person(text: str, choices: tuple[str, ...]) -> str | None:
    raise ToolFailure("there is nobody to ask")


class ReadRecord(Struct):
    """What a session knows of a file that it has read or written."""

    size: int
    mtime_ns: int
    digest: str


class ToolContext(Struct, frozen=True):
    """What a running call can reach. Made by the session for each call."""

    call_id: str
    workspace: Workspace
    commands: Commands
    agents: Agents
    reads: dict[str, ReadRecord]
    """By executor and real path, "local:/a/b"; of the session, kept over restarts."""
    publish: Callable[[str], None]
    """Show clean output while the call runs; never blocks."""
    save: Callable[[bytes], Awaitable[str]]
    """Keep bytes as a blob of the conversation and return its key."""
    load: Callable[[str, int, int], Awaitable[bytes]] = _no_blob
    """Bytes of a blob of the conversation: key, offset, length; `ToolFailure` without one."""
    served: Callable[[str], None] = _nobody
    """Note that a client, by its name, served a part of the call."""
    ask: Callable[[str, tuple[str, ...]], Awaitable[str | None]] = _no_person
    """Put a question to the person, with answers to choose from; None: no answer is wanted.

    Waits until it is answered by any client, or the turn ends; the question is an item."""
    command_foreground_s: float = 120.0
    """A command that takes longer goes on in the background; from the agent's budgets."""


class Tool(ABC):
    @property
    @abstractmethod
    def spec(self) -> ToolSpec: ...

    @abstractmethod
    async def prepare(self, arguments: str, workspace: Workspace) -> PreparedCall:
        """Check the arguments, the text that the model wrote, and say what the call would do.

        Only a strict JSON object passes: duplicate keys, NaN and trailing text do not. Raises
        `ToolFailure` with one short text that names every problem. Touches nothing.
        """
