"""``list_dir``: what is in a directory."""

from __future__ import annotations

from functools import partial

from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolResult
from vaala.tools.declared import DeclaredTool
from vaala.tools.files import access_to, find_place, shown
from vaala.tools.results import noted
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean_line, cut_lines
from vaala_executors.workspace import DirEntry, Place, Workspace
from vaala_protocol.calls import ReadDetails

_NAME_CHARS_MAX = 300


class ListArguments(ToolArguments, frozen=True):
    path: str = "."


class ListDir(DeclaredTool[ListArguments]):
    def __init__(self) -> None:
        super().__init__(
            "list_dir",
            "List a directory: directories end with /, links with @, files have their size.",
            ListArguments,
        )

    async def plan(self, arguments: ListArguments, workspace: Workspace) -> PreparedCall:
        place = await find_place(workspace, arguments.path)
        return PreparedCall(
            details=ReadDetails(path=arguments.path, executor=workspace.executor),
            title=f"List {shown(place)}",
            access=access_to(workspace, place, "read"),
            run=partial(_list, place),
        )


async def _list(place: Place, context: ToolContext) -> ToolResult:
    entries = await context.workspace.list(place)
    if not entries:
        return noted("", f"{shown(place)} is empty.")
    cut = cut_lines(
        [_line(entry) for entry in entries[: limits.LIST_ENTRIES_MAX]], limits.LIST_BYTES_MAX
    )
    if cut.lines == len(entries):
        return noted(cut.text)
    return noted(
        cut.text,
        f"{cut.lines:,} of {len(entries):,} entries are "
        "shown; search with a glob finds files by name.",
    )


def _line(entry: DirEntry) -> str:
    name = clean_line(entry.name, _NAME_CHARS_MAX)
    match entry.kind:
        case "directory":
            return f"{name}/"
        case "link":
            return f"{name}@"
        case "file":
            return f"{name}  {entry.size:,}"
        case "other":
            return f"{name}  (device, socket or FIFO)"
