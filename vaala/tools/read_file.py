"""``read_file``: the text of a file, page by page."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta

from vaala.permissions.base import Access
from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolFailure, ToolResult
from vaala.tools.declared import DeclaredTool
from vaala.tools.encoding import Binary, Encoding, decode, encoding_of_head
from vaala.tools.files import Loaded, access_to, find_place, load, remember, shown
from vaala.tools.pages import Page, Read, beyond_end, page_of, scan, split_lines
from vaala.tools.results import noted
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean_line, size_text
from vaala_executors.workspace import Place, Workspace
from vaala_protocol.calls import ReadDetails

_BLOB = "blob:"


class ReadArguments(ToolArguments, frozen=True):
    path: str
    offset: Annotated[int, Meta(description="First line, from 1", ge=1)] = 1
    limit: Annotated[int, Meta(description="Number of lines", ge=1)] = limits.READ_LINES_MAX


class ReadFile(DeclaredTool[ReadArguments]):
    """Reads text files; also output that was saved as a blob, by its name ``blob:KEY``."""

    def __init__(self) -> None:
        super().__init__(
            "read_file",
            "Read a text file. A note says when it is shown in part and how to go on. "
            "blob:KEY reads saved output.",
            ReadArguments,
        )

    async def plan(self, arguments: ReadArguments, workspace: Workspace) -> PreparedCall:
        if arguments.path.startswith(_BLOB):
            key = arguments.path.removeprefix(_BLOB)
            return PreparedCall(
                details=ReadDetails(path=arguments.path, executor=workspace.executor),
                title=f"Read saved output {clean_line(key, limits.VALUE_TEXT_CHARS_MAX)}",
                access=Access("none"),
                run=partial(_read_blob, key, arguments),
            )
        place = await find_place(workspace, arguments.path)
        return PreparedCall(
            details=ReadDetails(path=arguments.path, executor=workspace.executor),
            title=f"Read {shown(place)}",
            access=access_to(workspace, place, "read"),
            run=partial(_read_file, place, arguments),
        )


async def _read_file(place: Place, arguments: ReadArguments, context: ToolContext) -> ToolResult:
    workspace = context.workspace
    loaded = await load(workspace, place)
    if loaded.data is None:

        async def read(offset: int, length: int) -> bytes:
            return await workspace.read(place, offset=offset, length=length)

        page = await _scan(read, shown(place), arguments)
        if isinstance(page, Page):
            size = f"The file has {size_text(loaded.stat.size, 'byte')}."
            page = Page(page.text, (*page.notes, size))
    else:
        page = _whole(loaded.data, shown(place), arguments)
    if isinstance(page, Binary):
        return _binary(shown(place), page, loaded)
    remember(context, place, loaded.stat, loaded.digest)
    return noted(page.text, *page.notes)


async def _read_blob(key: str, arguments: ReadArguments, context: ToolContext) -> ToolResult:
    bound = limits.FILE_WHOLE_BYTES_MAX + 1
    data = await context.load(key, 0, bound)
    name = f"saved output {clean_line(key, limits.VALUE_TEXT_CHARS_MAX)}"
    page = (
        await _scan(partial(context.load, key), name, arguments)
        if len(data) == bound
        else _whole(data, name, arguments)
    )
    if isinstance(page, Binary):
        return noted("", f"{name} is {page.what}, {size_text(len(data), 'byte')}.")
    return noted(page.text, *page.notes)


def _whole(data: bytes, name: str, arguments: ReadArguments) -> Page | Binary:
    decoded = decode(data)
    if isinstance(decoded, Binary):
        return decoded
    lines = split_lines(decoded.text)
    if arguments.offset > max(len(lines), 1):
        raise beyond_end(name, arguments.offset, len(lines))
    if not lines:
        return Page("", (f"{name} is empty.",))
    part = lines[arguments.offset - 1 :]
    page = page_of(part, arguments.offset, arguments.limit, total=len(lines))
    return Page(page.text, (*page.notes, *_encoding_notes(decoded.encoding)))


async def _scan(read: Read, name: str, arguments: ReadArguments) -> Page | Binary:
    encoding = encoding_of_head(await read(0, limits.BINARY_SAMPLE_BYTES))
    if isinstance(encoding, Binary):
        return encoding
    if encoding not in ("utf-8", "latin-1"):
        raise ToolFailure(
            f"{name} is {encoding.upper()} and larger than "
            f"{size_text(limits.FILE_WHOLE_BYTES_MAX, 'byte')}; convert it with iconv first"
        )
    page = await scan(read, encoding, name, arguments.offset, arguments.limit)
    return Page(page.text.removeprefix("\ufeff"), (*page.notes, *_encoding_notes(encoding)))


def _encoding_notes(encoding: Encoding) -> tuple[str, ...]:
    if encoding == "latin-1":
        return (
            "The file is not UTF-8 and is shown as Latin-1: letters other than ASCII may be "
            "wrong. An edit leaves all other bytes as they are.",
        )
    if encoding != "utf-8":
        return (f"The file is {encoding.upper()} with a byte order mark; edits keep it.",)
    return ()


def _binary(name: str, found: Binary, loaded: Loaded) -> ToolResult:
    size = size_text(loaded.stat.size, "byte")
    return noted("", f"{name} is not text: {found.what}, {size}.")
