"""Each message by itself: its role, its keys and its content."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection

from vaala.testing.validators import chat_rules as rules
from vaala.testing.validators.chat_calls import check_calls
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
from vaala.testing.validators.limits import MAX_NAME_CHARS

_KEYS = {
    "system": frozenset(("role", "content", "name")),
    "user": frozenset(("role", "content", "name")),
    "assistant": frozenset(("role", "content", "name", "tool_calls")),
    "tool": frozenset(("role", "content", "tool_call_id")),
}
_PART_TYPES = {
    "system": ("text",),
    "user": ("text", "image_url", "input_audio", "file"),
    "assistant": ("text",),
    "tool": ("text",),
}
_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_DATA_URL = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,")
_WEB_URL = re.compile(r"https?://[^\s/]+(?:/\S*)?")
_DETAILS = ("auto", "low", "high")


def check_messages(
    messages: JsonArray, extra_keys: Collection[str], mistral_ids: bool, report: Report
) -> bool:
    """Check each message. True: all are objects with a role, so their order can be judged."""
    ordered = True
    for index, value in enumerate(messages):
        path = child("$", "messages", index)
        message = as_object(value)
        if message is None:
            report.add(rules.MESSAGES, path, f"is no object but {type(value).__name__}")
            ordered = False
            continue
        role = message.get("role")
        if not isinstance(role, str) or role not in _KEYS:
            expected = ", ".join(_KEYS)
            report.add(rules.ROLE, child(path, "role"), f"{show(role)} is none of {expected}")
            ordered = False
            continue
        _check_keys(message, role, extra_keys, path, report)
        _check_content(message, role, path, report)
        if role == "assistant" and "tool_calls" in message:
            calls_path = child(path, "tool_calls")
            check_calls(message["tool_calls"], calls_path, mistral_ids, report)
    return ordered


def _check_keys(
    message: JsonObject, role: str, extra_keys: Collection[str], path: str, report: Report
) -> None:
    for key in message:
        if key not in _KEYS[role] and key not in extra_keys:
            message_text = f"a {role} message has no {show(key)}"
            report.add(rules.MESSAGE_KEYS, child(path, key), message_text)
    if "name" in message and "name" in _KEYS[role]:
        name = message["name"]
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            report.add(rules.MESSAGE_NAME, child(path, "name"), f"{show(name)} is no legal name")


def _check_content(message: JsonObject, role: str, path: str, report: Report) -> None:
    content = message.get("content")
    content_path = child(path, "content")
    if content is None:
        if role != "assistant":
            report.add(rules.CONTENT_REQUIRED, content_path, f"a {role} message needs content")
        elif "tool_calls" not in message:
            report.add(rules.ASSISTANT_EMPTY, path, "neither content nor tool calls")
    elif isinstance(content, str):
        if is_blank(content):
            report.add(rules.CONTENT_EMPTY, content_path, f"blank text {show(content)}")
    elif (parts := as_array(content)) is not None:
        _check_parts(parts, role, content_path, report)
    else:
        kind = type(content).__name__
        report.add(rules.CONTENT_TYPE, content_path, f"neither text nor parts but {kind}")


def _check_parts(parts: JsonArray, role: str, path: str, report: Report) -> None:
    if not parts:
        report.add(rules.CONTENT_EMPTY, path, "no content parts")
    for index, value in enumerate(parts):
        part_path = child(path, index)
        part = as_object(value)
        kind = None if part is None else part.get("type")
        if part is None or not isinstance(kind, str) or kind not in _PART_TYPES[role]:
            allowed = ", ".join(_PART_TYPES[role])
            message = f"a {role} message takes parts of type {allowed}, not {show(kind)}"
            report.add(rules.CONTENT_PART, part_path, message)
        elif part.keys() != {"type", kind}:
            message = f"a part of type {show(kind)} holds 'type' and {show(kind)} only"
            report.add(rules.CONTENT_PART, part_path, message)
        else:
            _check_part(part[kind], kind, child(part_path, kind), report)


def _check_part(value: object, kind: str, path: str, report: Report) -> None:
    if kind == "text":
        if not isinstance(value, str):
            report.add(rules.CONTENT_PART, path, f"is no string but {type(value).__name__}")
        elif is_blank(value):
            report.add(rules.CONTENT_EMPTY, path, f"blank text {show(value)}")
    elif kind == "image_url":
        _check_image(value, path, report)
    elif not as_object(value):
        report.add(rules.CONTENT_PART, path, "is no object with the data")


def _check_image(value: object, path: str, report: Report) -> None:
    match as_object(value):
        case {"url": str() as url, **rest} if rest.keys() <= {"detail"}:
            if not _is_image_url(url):
                message = f"{show(url)} is neither a web address nor base64 of an image"
                report.add(rules.CONTENT_IMAGE, child(path, "url"), message)
            if rest.get("detail", "auto") not in _DETAILS:
                message = f"{show(rest['detail'])} is none of {', '.join(_DETAILS)}"
                report.add(rules.CONTENT_IMAGE, child(path, "detail"), message)
        case _:
            report.add(rules.CONTENT_IMAGE, path, "holds 'url' and perhaps 'detail', no more")


def _is_image_url(url: str) -> bool:
    head = _DATA_URL.match(url)
    if head is None:
        return _WEB_URL.fullmatch(url) is not None
    try:
        return base64.b64decode(url[head.end() :], validate=True) != b""
    except (binascii.Error, ValueError):
        return False
