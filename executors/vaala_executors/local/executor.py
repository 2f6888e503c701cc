"""`LocalExecutor`: the machine that the runtime itself runs on."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType

import trio

from vaala_executors.limits import FILE_THREADS_MAX
from vaala_executors.local.left_over import end_left_over
from vaala_executors.local.search import Searcher
from vaala_executors.local.starter import Starter
from vaala_executors.local.workspace import LocalWorkspace, Machine
from vaala_executors.workspace import Executor, Workspace


class LocalExecutor(Executor):
    """Own it with ``async with``: leaving ends every command and the supervisor they run under.

    ``environ`` is what commands inherit, by default this process's environment. ``strip`` tells
    the names (keys of model providers) that are taken out of it; it is asked at each start of a
    command, so that what a configuration names later counts. ``shell`` is what a shell command is
    appended to: bash where there is one, since models write for it, else sh.
    """

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        strip: Callable[[], Iterable[str]] = tuple,
        shell: Sequence[str] | None = None,
        name: str = "local",
    ) -> None:
        inherited = dict(os.environ if environ is None else environ)
        chosen = default_shell(inherited) if shell is None else tuple(shell)
        limiter = trio.CapacityLimiter(FILE_THREADS_MAX)
        starter = Starter(inherited, strip, chosen, limiter)
        self._machine = Machine(name, starter, limiter, Searcher(starter))

    async def __aenter__(self) -> LocalExecutor:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._machine.starter.aclose()

    @property
    def name(self) -> str:
        return self._machine.name

    @property
    def kind(self) -> str:
        return "local"

    @asynccontextmanager
    async def open_workspace(
        self, directory: str, additional: Sequence[str] = ()
    ) -> AsyncGenerator[Workspace]:
        yield LocalWorkspace(self._machine, directory, additional)

    async def left_over(self) -> AsyncIterator[int]:
        """See `Executor.left_over`. Commands of runtimes that live are left alone.

        Needs /proc: elsewhere only the supervisor, which outlives the runtime, ends them.
        """
        pids = await trio.to_thread.run_sync(end_left_over, limiter=self._machine.limiter)
        for pid in pids:
            yield pid


def default_shell(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return what a shell command is appended to: bash where there is one on PATH, else sh."""
    bash = shutil.which("bash", path=environ.get("PATH"))
    return (bash or "/bin/sh", "-c")
