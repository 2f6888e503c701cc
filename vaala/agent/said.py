"""What items say to a model in the place of a person, in text that every server can read."""

from __future__ import annotations

from collections.abc import Iterable

from vaala.changes import replace
from vaala.models.base import UserSaid
from vaala.text import is_blank, scrub
from vaala_protocol.content import Content, FileContent, ImageContent, TextContent
from vaala_protocol.items import (
    CommandEnd,
    Instructions,
    Item,
    ModelError,
    PeerMessage,
    Skill,
    UserMessage,
)

_AGAIN = "Answer again with the JSON document alone: no words, no Markdown around it."


def said_by(item: Item) -> tuple[Content, ...]:
    """Return what an item says to the model in the place of a person; nothing for most kinds."""
    match item:
        case UserMessage():
            return visible(item.content) or (text_block("(an empty message)"),)
        case PeerMessage():
            return (text_block(f"Message from agent {item.from_session}:"), *visible(item.content))
        case CommandEnd():
            return (text_block(_command_end(item)),)
        case Instructions():
            return (text_block(f"Instructions from {item.source}:\n{item.text}"),)
        case ModelError(error="invalid_output"):
            return (text_block(f"{item.message}\n{_AGAIN}"),)
        case Skill():
            return (text_block(f"Skill {item.name}:\n{item.text}"),)
        case _:
            return ()


def _command_end(item: CommandEnd) -> str:
    if item.lost:
        how = "was lost: the runtime ended while it ran"
    elif item.signal is not None:
        how = f"was ended by signal {item.signal}"
    elif item.exit_code is None:
        how = "ended, and its exit code is not known"
    else:
        how = f"ended with exit code {item.exit_code}"
    output = "" if is_blank(item.output) else f"\nIts last output:\n{item.output}"
    return f"The background command {item.command_id} ({item.command}) {how}.{output}"


def visible(content: Iterable[Content]) -> tuple[Content, ...]:
    """Return the blocks that show something, with text that every server can read."""
    return tuple(
        _clean(block)
        for block in content
        if not (isinstance(block, TextContent) and is_blank(block.text))
    )


def _clean(block: Content) -> Content:
    match block:
        case TextContent(text=text):
            return text_block(text)
        case ImageContent(media_type=media_type):
            return replace(block, media_type=scrub(media_type))
        case FileContent(name=name, media_type=media_type):
            return replace(block, name=scrub(name), media_type=scrub(media_type))


def text_block(text: str) -> TextContent:
    return TextContent(text=scrub(text))


def line(text: str) -> UserSaid:
    return UserSaid((text_block(text),))
