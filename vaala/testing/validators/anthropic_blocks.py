"""Each content block by itself: where its type may stand, its keys and its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vaala.testing.validators import anthropic_rules as rules
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
from vaala.testing.validators.limits import CLAUDE_MAX_IMAGE_BYTES, MAX_NAME_CHARS
from vaala.testing.validators.values import Shape, decoded_size, is_text, is_web_url, shape

TOOL_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_TOOL_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_RESULT = re.compile(r"[a-z_]+_tool_result")
_SHAPES: Mapping[str, Shape] = {
    "text": shape("type text", "cache_control citations"),
    "image": shape("type source", "cache_control"),
    "document": shape("type source", "cache_control citations context title"),
    "search_result": shape("type source title content", "cache_control citations"),
    "container_upload": shape("type file_id", "cache_control"),
    "tool_reference": shape("type tool_name", "cache_control"),
    "tool_use": shape("type id name input", "cache_control caller"),
    "tool_result": shape("type tool_use_id", "cache_control content is_error"),
    "thinking": shape("type thinking signature"),
    "redacted_thinking": shape("type data"),
    "server_tool_use": shape("type id name input", "cache_control caller"),
    "compaction": shape("type content", "cache_control encrypted_content"),
}
_SERVER_RESULT_SHAPE = shape("type tool_use_id content", "cache_control caller")
_PLACES: Mapping[str, frozenset[str]] = {
    "system": frozenset(("text",)),
    "user": frozenset(
        ("text", "image", "document", "search_result", "container_upload", "tool_result")
    ),
    "assistant": frozenset(
        ("text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "compaction")
    ),
    "tool_result": frozenset(("text", "image", "document", "search_result", "tool_reference")),
}
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def is_server_result(kind: object) -> bool:
    """True for the result block of a tool that the server ran, such as a search of the web."""
    return (
        isinstance(kind, str)
        and kind != "tool_result"
        and _SERVER_RESULT.fullmatch(kind) is not None
    )


def check_blocks(blocks: JsonArray, place: str, path: str, report: Report) -> None:
    """Check the blocks of "system", of a "user" or "assistant" message, or of a "tool_result"."""
    for index, value in enumerate(blocks):
        block_path = child(path, index)
        block = as_object(value)
        kind = None if block is None else block.get("type")
        if block is None or not isinstance(kind, str) or not _may_stand(kind, place):
            report.add(rules.BLOCK_TYPE, block_path, f"{show(kind)} has no place in {place}")
        elif _shape_of(kind).check(block, rules.BLOCK_KEYS, block_path, report):
            _CHECKS.get(kind, _no_check)(block, block_path, report)


def _may_stand(kind: str, place: str) -> bool:
    return kind in _PLACES[place] or (place == "assistant" and is_server_result(kind))


def _shape_of(kind: str) -> Shape:
    return _SHAPES.get(kind, _SERVER_RESULT_SHAPE)


def _no_check(block: JsonObject, path: str, report: Report) -> None:
    """For a block that is opaque but for its keys."""


def _check_text(block: JsonObject, path: str, report: Report) -> None:
    text = block["text"]
    if not isinstance(text, str):
        report.add(rules.BLOCK_KEYS, child(path, "text"), f"is no text but {type(text).__name__}")
    elif is_blank(text):
        report.add(rules.TEXT_BLANK, child(path, "text"), "must contain non-whitespace text")


def _check_image(block: JsonObject, path: str, report: Report) -> None:
    source_path = child(path, "source")
    match as_object(block["source"]):
        case {"type": "base64", "media_type": media_type, "data": data, **rest} if not rest:
            if media_type not in _IMAGE_TYPES:
                message = f"{show(media_type)} is none of {', '.join(_IMAGE_TYPES)}"
                report.add(rules.IMAGE, child(source_path, "media_type"), message)
            size = decoded_size(data)
            if size is None:
                report.add(rules.IMAGE, child(source_path, "data"), "is no base64 of an image")
            elif size > CLAUDE_MAX_IMAGE_BYTES:
                message = f"image exceeds {CLAUDE_MAX_IMAGE_BYTES} bytes: {size}"
                report.add(rules.IMAGE_LIMITS, source_path, message)
        case {"type": "url", "url": url, **rest} if not rest and is_web_url(url):
            pass
        case {"type": "file", "file_id": file_id, **rest} if not rest and is_text(file_id):
            pass
        case _:
            report.add(rules.IMAGE, source_path, "is neither base64, url nor file")


def _check_document(block: JsonObject, path: str, report: Report) -> None:
    match as_object(block["source"]):
        case {"type": "base64", "media_type": "application/pdf", "data": data, **rest} if (
            not rest and decoded_size(data) is not None
        ):
            pass
        case {"type": "text", "media_type": "text/plain", "data": data, **rest} if (
            not rest and is_text(data)
        ):
            pass
        case {"type": "content", "content": str() | list(), **rest} if not rest:
            pass
        case {"type": "url", "url": url, **rest} if not rest and is_web_url(url):
            pass
        case {"type": "file", "file_id": file_id, **rest} if not rest and is_text(file_id):
            pass
        case _:
            report.add(rules.DOCUMENT, child(path, "source"), "is no known source of a document")


def _check_id(value: object, path: str, report: Report) -> None:
    if not isinstance(value, str) or _TOOL_ID.fullmatch(value) is None:
        report.add(rules.TOOL_ID, path, f"{show(value)} is not letters, digits, '_' and '-'")


def _check_use(block: JsonObject, path: str, report: Report) -> None:
    _check_id(block["id"], child(path, "id"), report)
    name = block["name"]
    if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
        message = f"{show(name)} is not 1 to {MAX_NAME_CHARS} letters, digits, '_' and '-'"
        report.add(rules.TOOL_NAME, child(path, "name"), message)
    if as_object(block["input"]) is None:
        message = f"should be an object, not {type(block['input']).__name__}"
        report.add(rules.TOOL_INPUT, child(path, "input"), message)


def _check_result(block: JsonObject, path: str, report: Report) -> None:
    _check_id(block["tool_use_id"], child(path, "tool_use_id"), report)
    is_error = block.get("is_error", False)
    if not isinstance(is_error, bool):
        report.add(rules.RESULT, child(path, "is_error"), "is neither true nor false")
    content = block.get("content", "")
    content_path = child(path, "content")
    if isinstance(content, str):
        return
    blocks = as_array(content)
    if blocks is None:
        message = f"is neither text nor blocks but {type(content).__name__}"
        report.add(rules.RESULT, content_path, message)
        return
    check_blocks(blocks, "tool_result", content_path, report)
    kinds = [(as_object(inner) or {}).get("type") for inner in blocks]
    if is_error is True and any(kind != "text" for kind in kinds):
        message = "all content must be type 'text' if 'is_error' is true"
        report.add(rules.RESULT_ERROR, content_path, message)


def _check_thinking(block: JsonObject, path: str, report: Report) -> None:
    if not isinstance(block["thinking"], str):
        report.add(rules.THINKING_BLOCK, child(path, "thinking"), "is no text")
    if not is_text(block["signature"]):
        report.add(rules.THINKING_BLOCK, child(path, "signature"), "is no signature")


def _check_redacted(block: JsonObject, path: str, report: Report) -> None:
    if not is_text(block["data"]):
        report.add(rules.THINKING_BLOCK, child(path, "data"), "is no encrypted text")


_CHECKS: Mapping[str, Callable[[JsonObject, str, Report], None]] = {
    "text": _check_text,
    "image": _check_image,
    "document": _check_document,
    "tool_use": _check_use,
    "server_tool_use": _check_use,
    "tool_result": _check_result,
    "thinking": _check_thinking,
    "redacted_thinking": _check_redacted,
}
