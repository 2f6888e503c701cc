"""The base of the built-in tools: a declaration of arguments, and a plan made from them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from contextlib import contextmanager
from typing import Generic, TypeVar

from msgspec.structs import replace

from vaala.models.base import ToolSpec
from vaala.tools.arguments import Arguments
from vaala.tools.base import PreparedCall, Tool, ToolContext, ToolFailure, ToolResult
from vaala.tools.schema import ToolArguments
from vaala_executors.errors import ExecutorError
from vaala_executors.workspace import Workspace

A = TypeVar("A", bound=ToolArguments)


class DeclaredTool(Tool, Generic[A]):
    """A tool whose arguments are a struct (`vaala.tools.schema`)."""

    def __init__(self, name: str, description: str, arguments: type[A]) -> None:
        self._arguments = Arguments(arguments)
        self._spec = ToolSpec(name, description, self._arguments.schema)

    @property
    def spec(self) -> ToolSpec:
        return self._spec

    async def prepare(self, arguments: str, workspace: Workspace) -> PreparedCall:
        read = self._arguments.read(self._spec.name, arguments)
        with executor_failures():
            call = await self.plan(read, workspace)

        async def run(context: ToolContext) -> ToolResult:
            with executor_failures():
                return await call.run(context)

        return replace(call, run=run)

    @abstractmethod
    async def plan(self, arguments: A, workspace: Workspace) -> PreparedCall:
        """Say what the call would do; raises `ToolFailure` or what an executor raises."""


@contextmanager
def executor_failures() -> Generator[None]:
    """Turn what an executor refuses into the result of the call: its texts name the thing."""
    try:
        yield
    except ExecutorError as error:
        raise ToolFailure(str(error)) from error
