"""Each message by itself, the system prompt, and how many images they hold together."""

from __future__ import annotations

from collections.abc import Iterator

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.anthropic_blocks import check_blocks
from vaala.testing.validators.common import (
    JsonArray,
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    is_blank,
    show,
)
from vaala.testing.validators.limits import CLAUDE_MAX_IMAGES
from vaala.testing.validators.values import shape

_MESSAGE = shape("role content")
_ROLES = ("user", "assistant")


def check_system(value: object, report: Report) -> None:
    path = "$.system"
    if isinstance(value, str):
        if is_blank(value):
            report.add(rules.TEXT_BLANK, path, "must contain non-whitespace text")
    elif (blocks := as_array(value)) is not None:
        check_blocks(blocks, "system", path, report)
    else:
        message = f"is neither text nor blocks but {type(value).__name__}"
        report.add(rules.CONTENT_TYPE, path, message)


def check_messages(messages: JsonArray, report: Report) -> bool:
    """Check each message. True: each is an object with a role, so their order can be judged."""
    ordered = True
    for index, value in enumerate(messages):
        path = child("$", "messages", index)
        message = as_object(value)
        if message is None:
            report.add(rules.MESSAGES, path, f"is no object but {type(value).__name__}")
            ordered = False
            continue
        complete = _MESSAGE.check(message, rules.MESSAGE_KEYS, path, report)
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            if "role" in message:
                text = f"{show(role)} is none of {', '.join(_ROLES)}"
                report.add(rules.ROLE, child(path, "role"), text)
            ordered = False
        elif complete:
            _check_content(message["content"], role, child(path, "content"), report)
    if (images := sum(1 for _ in _images(messages))) > CLAUDE_MAX_IMAGES:
        text = f"{images} images are more than {CLAUDE_MAX_IMAGES}"
        report.add(rules.IMAGE_LIMITS, "$.messages", text)
    return ordered


def _check_content(content: object, role: str, path: str, report: Report) -> None:
    if content in ("", []):
        message = "all messages must have non-empty content"
        report.add(rules.CONTENT_EMPTY, path, message)
    elif isinstance(content, str):
        if is_blank(content):
            report.add(rules.TEXT_BLANK, path, "must contain non-whitespace text")
    elif (blocks := as_array(content)) is not None:
        check_blocks(blocks, role, path, report)
    else:
        message = f"is neither text nor blocks but {type(content).__name__}"
        report.add(rules.CONTENT_TYPE, path, message)


def blocks_of(node: JsonObject) -> Iterator[JsonObject]:
    """The objects among the content blocks of a message or of a tool result."""
    for value in as_array(node.get("content")) or ():
        if (block := as_object(value)) is not None:
            yield block


def _images(messages: JsonArray) -> Iterator[JsonObject]:
    for value in messages:
        for block in blocks_of(as_object(value) or {}):
            if block.get("type") == "image":
                yield block
            elif block.get("type") == "tool_result":
                yield from (inner for inner in blocks_of(block) if inner.get("type") == "image")
