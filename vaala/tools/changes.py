"""What ``write_file`` and ``edit_file`` share: one change of one file, guarded and recorded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Literal, TypeVar

import trio
from msgspec import Struct

from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolResult
from vaala.tools.declared import DeclaredTool
from vaala.tools.files import (
    Loaded,
    access_to,
    check_unchanged,
    digest_of,
    file_key,
    find_place,
    load_if_there,
    remember,
    shown,
)
from vaala.tools.locks import PathLocks
from vaala.tools.results import noted
from vaala.tools.schema import ToolArguments
from vaala_executors.workspace import Place, Workspace
from vaala_protocol.calls import FileChange, FileChangeDetails


class FileArguments(ToolArguments, frozen=True):
    path: str


A = TypeVar("A", bound=FileArguments)


class NewContent(Struct, frozen=True):
    data: bytes
    diff: str | None
    said: str
    """The result for the model."""


class ChangeTool(DeclaredTool[A]):
    """A tool that changes one file. Changes of one file come one after the other."""

    def __init__(
        self, name: str, description: str, arguments: type[A], *, verb: str, locks: PathLocks
    ) -> None:
        super().__init__(name, description, arguments)
        self._verb = verb
        self._locks = locks

    @abstractmethod
    def make(self, arguments: A, place: Place, before: Loaded | None) -> NewContent:
        """Return the new content; raises `ToolFailure`. No I/O; may run in a thread."""

    async def plan(self, arguments: A, workspace: Workspace) -> PreparedCall:
        place = await find_place(workspace, arguments.path)
        change: Literal["create", "edit"] = "create" if place.stat is None else "edit"
        details = FileChangeDetails(
            changes=(FileChange(path=arguments.path, change=change),), executor=workspace.executor
        )
        return PreparedCall(
            details=details,
            title=f"{'Create' if change == 'create' else self._verb} {shown(place)}",
            access=access_to(workspace, place, "edit"),
            run=partial(self._run, arguments, place),
        )

    async def _run(self, arguments: A, place: Place, context: ToolContext) -> ToolResult:
        workspace = context.workspace
        async with self._locks.hold(file_key(workspace, place)):
            before = await load_if_there(workspace, place)
            if before is not None:
                check_unchanged(context, place, before)
            content = await _compute(partial(self.make, arguments, place, before), before)
            if before is None or content.data != before.data:
                stat = await workspace.write(place, content.data)
                remember(context, place, stat, await digest_of(content.data))
        change = FileChange(
            path=arguments.path, change="create" if before is None else "edit", diff=content.diff
        )
        details = FileChangeDetails(changes=(change,), executor=workspace.executor)
        return noted(content.said, details=details)


async def _compute(make: Callable[[], NewContent], before: Loaded | None) -> NewContent:
    if before is None or before.data is None or len(before.data) <= limits.EDIT_INLINE_BYTES_MAX:
        return make()
    return await trio.to_thread.run_sync(make)
