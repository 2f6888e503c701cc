"""``search``: lines that match a pattern, or files by name."""

from __future__ import annotations

from functools import partial
from itertools import groupby
from typing import Annotated

from msgspec import Meta

from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolFailure, ToolResult
from vaala.tools.declared import DeclaredTool
from vaala.tools.files import access_to, find_place, shown
from vaala.tools.results import noted
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean_line, cut_lines, size_text
from vaala_executors.workspace import Match, Place, SearchQuery, Workspace
from vaala_protocol.calls import SearchDetails

_PATH_CHARS_MAX = 500


class SearchArguments(ToolArguments, frozen=True):
    pattern: Annotated[str | None, Meta(description="Regular expression for a line")] = None
    path: str = "."
    glob: Annotated[str | None, Meta(description="File names, e.g. *.py or src/**/*.ts")] = None
    ignore_case: bool = False


class Search(DeclaredTool[SearchArguments]):
    """Bounded in matches, bytes and, by the executor, in time."""

    def __init__(self) -> None:
        super().__init__(
            "search",
            "Search lines of files below path, or, without pattern, files by glob. Skips what "
            ".gitignore names.",
            SearchArguments,
        )

    async def plan(self, arguments: SearchArguments, workspace: Workspace) -> PreparedCall:
        if not arguments.pattern and not arguments.glob:
            raise ToolFailure("search was not run: give a pattern for lines, or a glob for files")
        place = await find_place(workspace, arguments.path)
        query = " in ".join(part for part in (arguments.pattern, arguments.glob) if part)
        wanted = clean_line(query, limits.VALUE_TEXT_CHARS_MAX)
        return PreparedCall(
            details=SearchDetails(query=query, path=arguments.path, executor=workspace.executor),
            title=f"Search {wanted} in {shown(place)}",
            access=access_to(workspace, place, "read"),
            run=partial(_search, place, arguments, query),
        )


async def _search(
    place: Place, arguments: SearchArguments, query: str, context: ToolContext
) -> ToolResult:
    workspace = context.workspace
    found = await workspace.search(
        SearchQuery(
            pattern=arguments.pattern or None,
            glob=arguments.glob,
            path=place,
            ignore_case=arguments.ignore_case,
            matches_max=limits.SEARCH_MATCHES_MAX,
        )
    )
    details = SearchDetails(
        query=query, path=arguments.path, executor=workspace.executor, matches=len(found.matches)
    )
    notes = [clean_line(found.note, limits.FAILURE_BYTES_MAX)] if found.note else []
    if not found.matches:
        return noted("", "No matches.", *notes, details=details)
    cut = cut_lines(_lines(found.matches), limits.SEARCH_BYTES_MAX)
    if cut.omitted_lines:
        notes.append(f"{size_text(cut.omitted_lines, 'more line')} found and not shown.")
    if found.truncated and not found.note:
        notes.append("There is more: narrow the pattern, path or glob.")
    return noted(cut.text, *notes, details=details)


def _lines(matches: tuple[Match, ...]) -> list[str]:
    """Return the lines of each file below its name; a file that matches by name is its name."""
    lines: list[str] = []
    for path, group in groupby(matches, key=lambda match: match.path):
        lines.append(clean_line(path, _PATH_CHARS_MAX))
        lines += [
            f"{match.line}: {clean_line(match.text, limits.SEARCH_LINE_CHARS_MAX)}"
            for match in group
            if match.line is not None
        ]
    return lines
