"""How items follow each other: each call with its one output, each reasoning with its answer."""

from __future__ import annotations

from vaala.testing.validators import responses_rules as rules
from vaala.testing.validators.common import JsonObject, Report, child, show
from vaala.testing.validators.responses_items import item_type


def check_order(items: list[JsonObject], report: Report) -> None:
    """Check the sequence. Each item has a known type already."""
    _check_ids(items, report)
    _check_pairing(items, report)
    for index, item in enumerate(items):
        if item_type(item) == "reasoning" and not _is_followed(items, index):
            message = f"{show(item.get('id'))} was provided without its required following item"
            report.add(rules.REASONING_ORPHAN, _at(index), message)


def _at(index: int) -> str:
    return child("$", "input", index)


def _check_ids(items: list[JsonObject], report: Report) -> None:
    known: set[str] = set()
    for index, item in enumerate(items):
        item_id = item.get("id")
        if not isinstance(item_id, str):
            continue
        if item_id in known:
            message = f"duplicate item found with id {show(item_id)}"
            report.add(rules.ITEM_DUPLICATE, child(_at(index), "id"), message)
        known.add(item_id)


def _check_pairing(items: list[JsonObject], report: Report) -> None:
    unanswered: dict[str, str] = {}
    answered: set[str] = set()
    for index, item in enumerate(items):
        call_id, kind = item.get("call_id"), item_type(item)
        path = child(_at(index), "call_id")
        if not isinstance(call_id, str):
            continue
        if kind == "function_call":
            if call_id in unanswered or call_id in answered:
                message = f"the id {show(call_id)} names an earlier call"
                report.add(rules.PAIRING_DUPLICATE_ID, path, message)
            unanswered[call_id] = path
        elif kind == "function_call_output" and call_id in unanswered:
            del unanswered[call_id]
            answered.add(call_id)
        elif kind == "function_call_output" and call_id in answered:
            message = f"a second output for the call {show(call_id)}"
            report.add(rules.PAIRING_DUPLICATE_RESULT, path, message)
        elif kind == "function_call_output":
            message = f"no tool call found for function call output with call_id {show(call_id)}"
            report.add(rules.PAIRING_ORPHAN, path, message)
    for call_id, path in unanswered.items():
        message = f"no tool output found for function call {show(call_id)}"
        report.add(rules.PAIRING_MISSING, path, message)


def _is_followed(items: list[JsonObject], index: int) -> bool:
    """A call, or an answer with the id that it came with; a message without one is a new item."""
    for item in items[index + 1 :]:
        match item_type(item):
            case "reasoning":
                continue
            case "message":
                return item.get("role") == "assistant" and item.get("id") is not None
            case kind:
                return kind != "function_call_output"
    return False
