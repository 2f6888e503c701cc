"""The tool calls inside an assistant message."""

from __future__ import annotations

import re

from vaala.testing.validators import chat_rules as rules
from vaala.testing.validators.common import (
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.limits import MAX_CALL_ID_CHARS
from vaala.testing.validators.openai_calls import check_arguments, check_name

_CALL_ID = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_CALL_ID_CHARS}}}")
_MISTRAL_CALL_ID = re.compile(r"[a-zA-Z0-9]{9}")


def check_calls(value: object, path: str, mistral_ids: bool, report: Report) -> None:
    calls = as_array(value)
    if not calls:
        report.add(rules.CALL_SHAPE, path, "is no array with at least one call")
        return
    for index, item in enumerate(calls):
        call_path = child(path, index)
        call = as_object(item)
        if call is None or call.keys() != {"id", "type", "function"}:
            message = "a call holds 'id', 'type' and 'function', no more and no less"
            report.add(rules.CALL_SHAPE, call_path, message)
            continue
        if call["type"] != "function":
            message = f"{show(call['type'])} is not 'function'"
            report.add(rules.CALL_SHAPE, child(call_path, "type"), message)
        _check_id(call["id"], child(call_path, "id"), mistral_ids, report)
        _check_function(call["function"], child(call_path, "function"), report)


def _check_id(value: object, path: str, mistral_ids: bool, report: Report) -> None:
    if not isinstance(value, str) or _CALL_ID.fullmatch(value) is None:
        message = f"{show(value)} is not 1 to {MAX_CALL_ID_CHARS} letters, digits, '_' and '-'"
        report.add(rules.CALL_ID, path, message)
    elif mistral_ids and _MISTRAL_CALL_ID.fullmatch(value) is None:
        report.add(rules.CALL_ID_MISTRAL, path, f"{show(value)} is not 9 letters and digits")


def _check_function(value: object, path: str, report: Report) -> None:
    function = as_object(value)
    if function is None or function.keys() != {"name", "arguments"}:
        message = "a function holds 'name' and 'arguments', no more and no less"
        report.add(rules.CALL_SHAPE, path, message)
        return
    check_name(function["name"], rules.CALL_NAME, child(path, "name"), report)
    arguments_path = child(path, "arguments")
    check_arguments(function["arguments"], rules.CALL_ARGUMENTS, arguments_path, report)
