"""Each item of the input by itself: its type, its keys and its values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from vaala.testing.validators import responses_rules as rules
from vaala.testing.validators.common import (
    JsonArray,
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.limits import (
    RESPONSES_MAX_ID_CHARS,
    RESPONSES_MAX_OUTPUT_CHARS,
)
from vaala.testing.validators.openai_calls import check_arguments, check_name
from vaala.testing.validators.responses_content import (
    INPUT_PARTS,
    OUTPUT_PARTS,
    check_parts,
    check_text,
)
from vaala.testing.validators.values import is_text, shape

_ID = re.compile(rf"[a-zA-Z0-9_-]{{1,{RESPONSES_MAX_ID_CHARS}}}")
_ROLES = ("user", "assistant", "system", "developer")
_STATUSES = ("in_progress", "completed", "incomplete")
_PHASES = ("commentary", "final_answer")
_MESSAGE = shape("role content", "type id status phase")
_CALL = shape("type call_id name arguments", "id status")
_OUTPUT = shape("type call_id output", "id status")
_REASONING = shape("type id summary", "encrypted_content content")
_PREFIXES = {"message": "msg", "function_call": "fc", "reasoning": "rs"}
_SERVER_CALLS = frozenset(
    (
        *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
        *("computer_call", "mcp_call", "mcp_list_tools", "tool_search_call", "compaction"),
    )
)


def check_items(items: JsonArray, stateless: bool, report: Report) -> bool:
    """Check each item. True: each is an object of a known type, so their order can be judged."""
    ordered = True
    for index, value in enumerate(items):
        path = child("$", "input", index)
        item = as_object(value)
        kind = None if item is None else item_type(item)
        if item is None or kind is None:
            report.add(rules.ITEM_TYPE, path, "is no object with the type of an item")
            ordered = False
        elif kind == "item_reference":
            if stateless:
                report.add(rules.STATE, path, "refers to an item that the server does not keep")
            ordered = False
        else:
            _check_item(item, kind, stateless, path, report)
    return ordered


def item_type(item: JsonObject) -> str | None:
    """The type of an item; a message need not name it. None: there is no such type."""
    kind = item.get("type", "message" if "role" in item else None)
    known = isinstance(kind, str) and (kind in _CHECKS or kind in _SERVER_CALLS)
    return kind if isinstance(kind, str) and (known or kind == "item_reference") else None


def _check_item(item: JsonObject, kind: str, stateless: bool, path: str, report: Report) -> None:
    if item.get("id") is not None or kind == "reasoning":
        _check_id(item.get("id"), kind, path, report)
    status = item.get("status")
    if status is not None and kind in _CHECKS and status not in _STATUSES:
        report.add(rules.ITEM_STATUS, child(path, "status"), f"is none of {', '.join(_STATUSES)}")
    if kind in _CHECKS:
        _CHECKS[kind](item, path, report)
    if kind == "reasoning" and stateless and not is_text(item.get("encrypted_content")):
        message = "a reasoning item that the server does not keep needs its encrypted content"
        report.add(rules.REASONING_STATE, child(path, "encrypted_content"), message)


def _check_id(value: object, kind: str, path: str, report: Report) -> None:
    if kind == "reasoning" and value is None:
        return  # told as a missing key
    prefix = _PREFIXES.get(kind, "")
    if not isinstance(value, str) or _ID.fullmatch(value) is None or not value.startswith(prefix):
        message = f"{show(value)} is no id of {RESPONSES_MAX_ID_CHARS} characters that begins with"
        report.add(rules.ITEM_ID, child(path, "id"), f"{message} {show(prefix)}")


def _check_message(item: JsonObject, path: str, report: Report) -> None:
    if not _MESSAGE.check(item, rules.ITEM_KEYS, path, report):
        return
    role = item["role"]
    if not isinstance(role, str) or role not in _ROLES:
        report.add(rules.ROLE, child(path, "role"), f"{show(role)} is none of {', '.join(_ROLES)}")
        return
    if item.get("phase") is not None and (role != "assistant" or item["phase"] not in _PHASES):
        report.add(rules.ITEM_KEYS, child(path, "phase"), f"is none of {', '.join(_PHASES)}")
    content, content_path = item["content"], child(path, "content")
    if isinstance(content, str):
        check_text(content, content_path, report)
    elif (parts := as_array(content)) is not None:
        allowed = OUTPUT_PARTS if role == "assistant" else INPUT_PARTS
        check_parts(parts, allowed, content_path, report)
    else:
        message = f"expected an array of objects or string, but got {type(content).__name__}"
        report.add(rules.CONTENT_TYPE, content_path, message)


def _check_call(item: JsonObject, path: str, report: Report) -> None:
    if not _CALL.check(item, rules.ITEM_KEYS, path, report):
        return
    _check_call_id(item["call_id"], child(path, "call_id"), report)
    check_name(item["name"], rules.CALL_NAME, child(path, "name"), report)
    check_arguments(item["arguments"], rules.CALL_ARGUMENTS, child(path, "arguments"), report)


def _check_call_id(value: object, path: str, report: Report) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= RESPONSES_MAX_ID_CHARS:
        message = f"{show(value)} is not 1 to {RESPONSES_MAX_ID_CHARS} characters"
        report.add(rules.CALL_ID, path, message)


def _check_output(item: JsonObject, path: str, report: Report) -> None:
    if not _OUTPUT.check(item, rules.ITEM_KEYS, path, report):
        return
    _check_call_id(item["call_id"], child(path, "call_id"), report)
    output, output_path = item["output"], child(path, "output")
    if isinstance(output, str):
        if len(output) > RESPONSES_MAX_OUTPUT_CHARS:
            message = f"is longer than {RESPONSES_MAX_OUTPUT_CHARS} characters"
            report.add(rules.OUTPUT, output_path, message)
    elif (parts := as_array(output)) is not None:
        check_parts(parts, INPUT_PARTS, output_path, report)
    else:
        message = f"is neither text nor parts but {type(output).__name__}"
        report.add(rules.OUTPUT, output_path, message)


def _check_reasoning(item: JsonObject, path: str, report: Report) -> None:
    if not _REASONING.check(item, rules.REASONING_ITEM, path, report):
        return
    for key, kind in (("summary", "summary_text"), ("content", "reasoning_text")):
        if key in item and not _are_texts_of(item[key], kind):
            message = f"is no array of texts of type {kind}"
            report.add(rules.REASONING_ITEM, child(path, key), message)
    if not isinstance(item.get("encrypted_content"), str | None):
        report.add(rules.REASONING_ITEM, child(path, "encrypted_content"), "is no text")


def _are_texts_of(value: object, kind: str) -> bool:
    parts = as_array(value)
    if parts is None:
        return False
    for part in parts:
        match as_object(part):
            case {"type": found, "text": str(), **rest} if found == kind and not rest:
                pass
            case _:
                return False
    return True


_CHECKS: Mapping[str, Callable[[JsonObject, str, Report], None]] = {
    "message": _check_message,
    "function_call": _check_call,
    "function_call_output": _check_output,
    "reasoning": _check_reasoning,
}
