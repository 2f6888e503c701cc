"""The border around a tool: its bugs stay within the call, and its texts come out clean."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolFailure, ToolResult
from vaala.tools.text import clean, clean_line, head_and_tail, is_clean, size_text
from vaala_protocol.content import Content, TextContent

T = TypeVar("T")
_log = logging.getLogger(__name__)


async def contained(name: str, work: Awaitable[T]) -> T:
    """Await the work of a tool. Every exception leaves it as one clean `ToolFailure`.

    One that the tool did not mean to raise is logged with its traceback. Cancel passes.
    """
    failures: list[ToolFailure] = []
    try:
        return await work
    except* Exception as group:
        failures.append(_failure(name, list(_leaves(group))))
    # In an except* block nothing may be raised in place of a cancel that came with the failure.
    raise failures[0]


def _leaves(group: BaseExceptionGroup[Exception]) -> Iterator[Exception]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


def _failure(name: str, errors: list[Exception]) -> ToolFailure:
    for error in errors:
        if not isinstance(error, ToolFailure):
            _log.error("the tool %s failed", name, exc_info=error)
    meant = [error for error in errors if isinstance(error, ToolFailure)]
    if len(meant) == len(errors):
        return ToolFailure(_bounded(str(meant[0])) or f"{name} failed", meant[0].details)
    texts = [f"{type(error).__name__}: {error}" for error in errors if error not in meant]
    return ToolFailure(_bounded(f"{name} failed with {'; '.join(texts)}"))


def _bounded(text: str) -> str:
    head, omitted, tail = head_and_tail(clean(text), limits.FAILURE_BYTES_MAX)
    return f"{head}\n({size_text(omitted, 'byte')} left out)\n{tail}" if omitted else head


def contained_call(name: str, call: PreparedCall) -> PreparedCall:
    return replace(
        call,
        title=clean_line(call.title, limits.TITLE_CHARS_MAX),
        run=partial(_run, name, call),
    )


async def _run(name: str, call: PreparedCall, context: ToolContext) -> ToolResult:
    result = await contained(name, call.run(context))
    content = _cleaned(result.content)
    if content is None:
        texts = [block.text for block in result.content if isinstance(block, TextContent)]
        others = [block for block in result.content if not isinstance(block, TextContent)]
        if (left_out := len(others) - limits.RESULT_BLOCKS_MAX) > 0:
            del others[limits.RESULT_BLOCKS_MAX :]
            texts.append(f"({size_text(left_out, 'file')} left out)")
        content = [TextContent(text=await _cut("\n".join(texts), context)), *others]
    return replace(result, content=tuple(content))


def _cleaned(content: Sequence[Content]) -> list[Content] | None:
    """Return the content with clean texts; None: it is too much as it is."""
    texts = [block.text for block in content if isinstance(block, TextContent)]
    # Cleaning takes its time: not for megabytes.
    if len(content) > limits.RESULT_BLOCKS_MAX or sum(map(len, texts)) > limits.RESULT_BYTES_MAX:
        return None
    blocks: list[Content] = []
    size = 0
    for block in content:
        if not isinstance(block, TextContent):
            blocks.append(block)
        elif text := clean(block.text):
            size += len(text.encode())
            blocks.append(TextContent(text=text))
    return blocks if size <= limits.RESULT_BYTES_MAX else None


async def _cut(text: str, context: ToolContext) -> str:
    """Return head and tail of a text; the whole of it is kept as a blob if storage can."""
    room = limits.RESULT_BYTES_MAX - limits.NOTE_BYTES
    if len(text) <= room and len((shown := clean(text)).encode()) <= room:
        return shown  # it was too many texts, not too much text
    try:
        saved = await context.save(text.encode("utf-8", "replace"))
        whole = f"read_file blob:{saved} has the whole text"
    except Exception as error:  # whatever a storage says, the tool has run: its result is given
        _log.warning("a result could not be kept whole", exc_info=error)
        whole = f"it could not be saved: {clean_line(str(error), limits.VALUE_TEXT_CHARS_MAX)}"
    head, omitted, tail = head_and_tail(text, room)
    if not (is_clean(head) and is_clean(tail)):
        # What is made visible has up to three times its bytes.
        head, omitted, tail = head_and_tail(text, room // 3)
    note = f"({size_text(omitted, 'byte')} left out; {whole})"
    return "\n".join(part for part in (clean(head), note, clean(tail)) if part)
