"""`Process`: a command that runs on an executor, with its whole tree of children."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping
from typing import Literal

from msgspec import Struct, field


class Command(Struct, frozen=True):
    """What to run. Exactly one of ``argv`` and ``shell`` is given.

    ``cwd`` is absolute, or relative to the workspace. ``env`` is laid over the executor's
    environment; None takes a variable out of it. Without ``stdin`` the process reads end of file.
    """

    argv: tuple[str, ...] = ()
    shell: str | None = None
    cwd: str = "."
    env: Mapping[str, str | None] = field(default_factory=dict[str, str | None])
    pty: bool = False
    stdin: bool = False


class Exit(Struct, frozen=True):
    """How a process ended: an exit code, or the number of the signal that ended it."""

    code: int | None
    signal: int | None


class Process(ABC):
    """Owned by the ``async with`` that started it; leaving ends the whole tree and reaps it."""

    @property
    @abstractmethod
    def pid(self) -> int: ...

    @abstractmethod
    def output(self) -> AsyncIterator[bytes]:
        """Yield stdout and stderr as they come, in one order; may be iterated once.

        Ends when the process has exited and a short drain is over, not when the pipe closes: a
        grandchild that keeps the pipe open holds nobody up.
        """

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Write to stdin; raises ``BrokenPipeError`` when nothing reads it any more."""

    @abstractmethod
    async def close_stdin(self) -> None: ...

    @abstractmethod
    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of the PTY; nothing without one."""

    @abstractmethod
    def send_signal(self, name: Literal["INT", "TERM", "KILL", "HUP"]) -> None:
        """Signal the process group; harmless when it has ended."""

    @abstractmethod
    async def wait(self) -> Exit:
        """Return how the process ended. Cancel: stops waiting only."""

    @abstractmethod
    async def end(self) -> Exit:
        """End the whole tree: TERM, a grace of 2 s, KILL; then reap. Safe to call twice.

        Runs shielded from cancel; bounded by the grace and a short margin.
        """
