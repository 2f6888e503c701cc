"""About how much text an event holds, to bound what waits for slow readers."""

from __future__ import annotations

from collections.abc import Iterable

from vaala_protocol.calls import FileChangeDetails
from vaala_protocol.content import Content, TextContent
from vaala_protocol.events import (
    CommandOutput,
    Event,
    InputChanged,
    ItemChanged,
    ItemDelta,
    SessionOpened,
)
from vaala_protocol.items import (
    AssistantMessage,
    CommandEnd,
    ContextSummary,
    Instructions,
    Item,
    PeerMessage,
    Reasoning,
    Skill,
    ToolCall,
    UserMessage,
)
from vaala_protocol.state import CommandEnded, InputSource, PeerInput, UserInput


def event_characters(event: Event) -> int:
    """Return about how much text an event holds; what is always short counts as nothing."""
    match event:
        case ItemDelta(text=text) | CommandOutput(text=text):
            return len(text)
        case ItemChanged(item=item):
            return item_characters(item)
        case InputChanged(input=waiting):
            return _source(waiting.source)
        case SessionOpened(session=session):
            items = sum(item_characters(item) for item in session.items)
            live = sum(item_characters(part.item) + len(part.text) for part in session.live)
            return items + live + sum(_source(waiting.source) for waiting in session.queue)
        case _:
            return 0


def item_characters(item: Item) -> int:
    """Return about how much text an item holds."""
    match item:
        case AssistantMessage() | Reasoning() | ContextSummary() | Instructions() | Skill():
            return len(item.text)
        case ToolCall(arguments=arguments, result=result):
            return len(arguments) + _content(result) + _details(item)
        case UserMessage(content=content) | PeerMessage(content=content):
            return _content(content)
        case CommandEnd(command=command, output=output):
            return len(command) + len(output)
        case _:
            return 0


def _details(call: ToolCall) -> int:
    if not isinstance(call.details, FileChangeDetails):
        return 0
    return sum(len(change.diff or "") for change in call.details.changes)


def _source(source: InputSource) -> int:
    match source:
        case UserInput(content=content) | PeerInput(content=content):
            return _content(content)
        case CommandEnded(command=command, output=output):
            return len(command) + len(output)


def _content(content: Iterable[Content]) -> int:
    return sum(len(block.text) for block in content if isinstance(block, TextContent))
