"""Each content by itself: its role, and its parts with their data."""

from __future__ import annotations

import re
from collections.abc import Mapping

from vaala.testing.validators import gemini_rules as rules
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    is_blank,
    show,
)
from vaala.testing.validators.gemini_fields import fields_of
from vaala.testing.validators.limits import GEMINI_MAX_NAME_CHARS
from vaala.testing.validators.values import is_flag, is_text

FUNCTION_NAME = re.compile(rf"[a-zA-Z_][a-zA-Z0-9_.:-]{{0,{GEMINI_MAX_NAME_CHARS - 1}}}")
NO_SIGNATURE = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
"""What the documentation lets stand for a signature that another model's call cannot have."""

_CONTENT = frozenset(("role", "parts"))
_DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult"),
)
_PART = frozenset((*_DATA, "thought", "thoughtSignature", "videoMetadata", "mediaResolution"))
_PLACES: Mapping[str, frozenset[str]] = {
    "user": frozenset(("text", "inlineData", "fileData", "functionResponse")),
    "model": frozenset(
        ("text", "inlineData", "fileData", "functionCall", "executableCode", "codeExecutionResult")
    ),
    "system": frozenset(("text",)),
}
_PAIRED = ("functionCall", "functionResponse")
_CALL = frozenset(("id", "name", "args"))
_RESPONSE = frozenset(("id", "name", "response", "parts", "willContinue", "scheduling"))
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
_MEDIA_TYPE = re.compile(r"[a-z]+/[a-zA-Z0-9.+-]+")


def check_content(value: object, path: str, report: Report) -> JsonObject | None:
    """Check one turn. Return its fields, with those of its parts, when its order can be judged."""
    content = fields_of(value, _CONTENT, path, report)
    if content is None:
        return None
    role = content.get("role")
    if not isinstance(role, str) or role not in ("user", "model"):
        report.add(rules.ROLE, child(path, "role"), f"{show(role)} is neither user nor model")
        return None
    parts = check_parts(content.get("parts"), role, child(path, "parts"), report)
    return None if parts is None else {"role": role, "parts": parts}


def check_system(value: object, path: str, report: Report) -> None:
    content = fields_of(value, _CONTENT, path, report)
    if content is not None:
        check_parts(content.get("parts"), "system", child(path, "parts"), report)


def check_parts(value: object, place: str, path: str, report: Report) -> list[JsonObject] | None:
    """Check the parts of a "user" or "model" turn or of the "system" instruction."""
    parts = as_array(value)
    if not parts:
        report.add(rules.PARTS_EMPTY, path, "must not be empty")
        return None
    checked: list[JsonObject] = []
    for index, item in enumerate(parts):
        part = fields_of(item, _PART, child(path, index), report)
        if part is None:
            return None
        _check_part(part, place, child(path, index), report)
        checked.append(part)
    # A call that is none leaves its response alone, which is not the fault to tell.
    told = any(key in part and as_object(part[key]) is None for part in checked for key in _PAIRED)
    return None if told else checked


def _check_part(part: JsonObject, place: str, path: str, report: Report) -> None:
    kinds = [key for key in _DATA if key in part]
    if len(kinds) != 1:
        message = f"one field of data is required, not {', '.join(kinds) or 'none'}"
        report.add(rules.PART_DATA, path, message)
        return
    kind = kinds[0]
    if kind not in _PLACES[place]:
        report.add(rules.PART_PLACE, child(path, kind), f"has no place in {place}")
    if not is_flag(part.get("thought", False)):
        report.add(rules.FIELD_TYPE, child(path, "thought"), "is neither true nor false")
    signature = part.get("thoughtSignature")
    if signature is not None and signature not in NO_SIGNATURE and not _is_bytes(signature):
        report.add(rules.SIGNATURE, child(path, "thoughtSignature"), "base64 decoding failed")
    _check_data(part[kind], kind, child(path, kind), report)


def _check_data(value: object, kind: str, path: str, report: Report) -> None:
    match kind:
        case "text":
            if not isinstance(value, str):
                report.add(rules.FIELD_TYPE, path, f"is no text but {type(value).__name__}")
            elif is_blank(value):
                report.add(rules.TEXT_BLANK, path, f"blank text {show(value)}")
        case "inlineData":
            _check_blob(value, path, report)
        case "fileData":
            data = fields_of(value, ("mimeType", "fileUri"), path, report)
            if data is not None and not is_text(data.get("fileUri")):
                report.add(rules.FILE, path, "needs a 'fileUri'")
        case "functionCall":
            _check_call(value, path, report)
        case "functionResponse":
            _check_response(value, path, report)
        case _:
            if as_object(value) is None:
                report.add(rules.FIELD_TYPE, path, "is no object")


def _check_blob(value: object, path: str, report: Report) -> None:
    blob = fields_of(value, ("mimeType", "data", "displayName"), path, report)
    if blob is None:
        return
    media_type = blob.get("mimeType")
    if not isinstance(media_type, str) or _MEDIA_TYPE.fullmatch(media_type) is None:
        report.add(rules.INLINE, child(path, "mimeType"), f"{show(media_type)} is no media type")
    if not _is_bytes(blob.get("data")):
        report.add(rules.INLINE, child(path, "data"), "base64 decoding failed, or it is empty")


def _is_bytes(value: object) -> bool:
    """Base64 as JSON of protocol buffers has it: of either alphabet, padded or not."""
    if not isinstance(value, str) or _BASE64.fullmatch(value) is None:
        return False
    return len(value.rstrip("=")) % 4 != 1


def _check_call(value: object, path: str, report: Report) -> None:
    call = fields_of(value, _CALL, path, report)
    if call is None:
        return
    name = call.get("name")
    if not isinstance(name, str) or FUNCTION_NAME.fullmatch(name) is None:
        report.add(rules.CALL_NAME, child(path, "name"), f"{show(name)} is no name of a function")
    if as_object(call.get("args", {})) is None:
        report.add(rules.CALL, child(path, "args"), "is no object")
    if not is_text(call.get("id", "absent")):
        report.add(rules.CALL_ID, child(path, "id"), "is no id")


def _check_response(value: object, path: str, report: Report) -> None:
    response = fields_of(value, _RESPONSE, path, report)
    if response is None:
        return
    if not is_text(response.get("name")):
        report.add(rules.RESPONSE_NAME, child(path, "name"), "name cannot be empty")
    if as_object(response.get("response")) is None:
        report.add(rules.RESPONSE, child(path, "response"), "is no object")
    if not is_text(response.get("id", "absent")):
        report.add(rules.CALL_ID, child(path, "id"), "is no id")
    parts = response.get("parts", [])
    if not isinstance(parts, list):
        report.add(rules.RESPONSE, child(path, "parts"), "is no array")
        return
    for index, item in enumerate(as_array(parts) or ()):
        part_path = child(path, "parts", index)
        part = fields_of(item, ("inlineData", "fileData"), part_path, report)
        if part is not None and len(part) != 1:
            report.add(rules.RESPONSE, part_path, "one field of data is required")
        for kind, data in (part or {}).items():
            _check_data(data, kind, child(part_path, kind), report)
