"""Items as text for people, for `vaala show`."""

from __future__ import annotations

from vaala.cli.people import local_time
from vaala.tools.text import clean, clean_line
from vaala_protocol.calls import CommandDetails
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent
from vaala_protocol.items import (
    Approval,
    AssistantMessage,
    CommandEnd,
    ContextCut,
    ContextSummary,
    Interruption,
    Item,
    ModelError,
    Notice,
    PeerMessage,
    Plan,
    Reasoning,
    ToolCall,
    UnknownItem,
    UserMessage,
)

RESULT_LINES_MAX = 10
LINE_CHARS_MAX = 200


def item_text(item: Item) -> str:
    """Return an item as lines without a newline at the end; empty for what people need not see."""
    match item:
        case UserMessage():
            return f"--- you, {local_time(item.created_at)}\n{_said(item.content)}"
        case AssistantMessage() if not item.text.strip():
            return ""  # it only called tools
        case AssistantMessage():
            cut = "\n(cut off here)" if item.partial else ""
            return f"--- agent, {local_time(item.created_at)}\n{clean(item.text)}{cut}"
        case PeerMessage():
            return f"--- agent {item.from_session}\n{_said(item.content)}"
        case ToolCall():
            return _call(item)
        case _:
            return _event(item)


def _event(item: Item) -> str:
    """One line about what happened beside messages and calls."""
    match item:
        case Reasoning() if item.text.strip():
            return f"  (thinks: {clean_line(item.text.strip(), LINE_CHARS_MAX)})"
        case Approval(answer=answer) if answer is not None:
            reason = f": {clean_line(answer.reason, LINE_CHARS_MAX)}" if answer.reason else ""
            return f"  (approval: {answer.option} by {answer.by}{reason})"
        case Approval():
            return f"  (approval: {item.state})"
        case ModelError():
            return f"  (model error: {clean_line(item.message, LINE_CHARS_MAX)})"
        case Notice():
            return f"  ({item.level}: {clean_line(item.text, LINE_CHARS_MAX)})"
        case Interruption():
            return f"  (interrupted by {item.by})"
        case CommandEnd():
            return f"  (ended: {clean_line(item.command, LINE_CHARS_MAX)})"
        case ContextCut(shortens=upto) if upto:
            return "  (from here on the agent sees old results of tools shortened)"
        case ContextSummary() | ContextCut():
            return "  (from here on the agent no longer sees what is above, or sees a summary)"
        case Plan():
            return "\n".join(f"  [{step.state}] {clean(step.text)}" for step in item.steps)
        case UnknownItem():
            return f"  (an item of a newer vaala: {clean_line(item.unknown_kind, 60)})"
        case _:
            return ""


def _call(call: ToolCall) -> str:
    title = clean_line(call.title or call.name, LINE_CHARS_MAX)
    state = "" if call.state == "done" else f" [{call.state}]"
    lines = [f"> {title}{state}"]
    if isinstance(call.details, CommandDetails) and call.details.exit_code:
        lines[0] += f" [exit code {call.details.exit_code}]"
    if call.reason:
        lines.append(f"  {clean_line(call.reason, LINE_CHARS_MAX)}")
    result = _said(call.result).rstrip("\n").split("\n") if call.result else []
    lines += [f"  {line[:LINE_CHARS_MAX]}".rstrip() for line in result[:RESULT_LINES_MAX]]
    if (more := len(result) - RESULT_LINES_MAX) > 0:
        lines.append(f"  … {more} more lines (--json shows all)")
    return "\n".join(lines)


def _said(content: tuple[Content, ...]) -> str:
    parts: list[str] = []
    for block in content:
        match block:
            case TextContent():
                parts.append(clean(block.text))
            case ImageContent():
                parts.append(f"[image, {block.size_bytes:,} bytes]")
            case FileContent():
                parts.append(f"[file {clean_line(block.name, 100)}, {block.size_bytes:,} bytes]")
    return "\n".join(parts)
