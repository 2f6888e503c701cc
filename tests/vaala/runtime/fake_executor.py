"""An executor whose processes do what a test says, so that the clock can be a fake."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tests.vaala.tools.scripted import ScriptedWorkspace
from vaala_executors.workspace import Executor, Workspace


class FakeExecutor(Executor):
    """``workspace.processes`` holds what was started; nothing of the machine is touched."""

    def __init__(self) -> None:
        self.workspace = ScriptedWorkspace()

    @property
    def name(self) -> str:
        return "local"

    @asynccontextmanager
    async def open_workspace(
        self, directory: str, additional: Sequence[str] = ()
    ) -> AsyncGenerator[Workspace]:
        yield self.workspace

    async def left_over(self) -> AsyncIterator[int]:
        return
        yield
