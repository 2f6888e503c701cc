"""How messages follow each other: roles, and each tool use with its one result."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.anthropic_blocks import is_server_result
from vaala.testing.validators.anthropic_messages import blocks_of
from vaala.testing.validators.common import JsonObject, Report, child, show


def check_order(messages: list[JsonObject], alternation: bool, report: Report) -> None:
    """Check the sequence. Each message has a legal role already, and there is at least one."""
    if messages[0]["role"] != "user":
        report.add(rules.ORDER_FIRST, _at(0), "first message must use the user role")
    if messages[-1]["role"] != "user" and not _is_paused(messages[-1]):
        message = "the conversation must end with a user message"
        report.add(rules.ORDER_LAST, _at(len(messages) - 1), message)
    if alternation:
        for index, (before, after) in enumerate(pairwise(messages), start=1):
            if before["role"] == after["role"]:
                message = "roles must alternate between user and assistant"
                report.add(rules.ORDER_ALTERNATION, _at(index), message)
    _check_pairing(messages, report)
    _check_server_results(messages, report)


def _at(index: int) -> str:
    return child("$", "messages", index)


def _is_paused(message: JsonObject) -> bool:
    """An answer with ``pause_turn`` goes back as it came, and is then the last message."""
    return any(block.get("type") == "server_tool_use" for block in blocks_of(message))


@dataclass(slots=True)
class _Round:
    """The tool uses of one assistant message, which the next message must answer."""

    unanswered: dict[str, str] = field(default_factory=dict[str, str])
    answered: set[str] = field(default_factory=set[str])


def _check_pairing(messages: list[JsonObject], report: Report) -> None:
    current = _Round()
    known_ids: set[str] = set()
    for index, message in enumerate(messages):
        _take_results(message, current, _at(index), report)
        _close(current, report)
        current = _Round()
        for block_index, block in enumerate(blocks_of(message)):
            if block.get("type") != "tool_use" or not isinstance(block.get("id"), str):
                continue
            tool_id, path = str(block["id"]), child(_at(index), "content", block_index, "id")
            if tool_id in known_ids:
                report.add(rules.PAIRING_DUPLICATE_ID, path, "tool_use ids must be unique")
            known_ids.add(tool_id)
            current.unanswered[tool_id] = path
    _close(current, report)


def _take_results(message: JsonObject, current: _Round, path: str, report: Report) -> None:
    other_before = False
    for index, block in enumerate(blocks_of(message)):
        block_path = child(path, "content", index)
        if block.get("type") != "tool_result":
            other_before = True
            continue
        if other_before:
            text = "tool_result blocks stand at the beginning of the message"
            report.add(rules.ORDER_RESULTS_FIRST, block_path, text)
        _take_result(block.get("tool_use_id"), current, child(block_path, "tool_use_id"), report)


def _take_result(tool_id: object, current: _Round, path: str, report: Report) -> None:
    if isinstance(tool_id, str) and tool_id in current.unanswered:
        del current.unanswered[tool_id]
        current.answered.add(tool_id)
    elif isinstance(tool_id, str) and tool_id in current.answered:
        message = f"each tool_use must have a single result, {show(tool_id)} has two"
        report.add(rules.PAIRING_DUPLICATE_RESULT, path, message)
    else:
        message = f"{show(tool_id)} is no tool_use of the previous message"
        report.add(rules.PAIRING_ORPHAN, path, message)


def _close(current: _Round, report: Report) -> None:
    for tool_id, path in current.unanswered.items():
        message = f"{show(tool_id)} has no tool_result in the next message"
        report.add(rules.PAIRING_MISSING, path, message)


def _check_server_results(messages: list[JsonObject], report: Report) -> None:
    for index, message in enumerate(messages):
        asked: set[object] = set()
        for block_index, block in enumerate(blocks_of(message)):
            if block.get("type") == "server_tool_use" and isinstance(block.get("id"), str):
                asked.add(block["id"])
            elif is_server_result(block.get("type")):
                tool_id = block.get("tool_use_id")
                if not isinstance(tool_id, str) or tool_id not in asked:
                    path = child(_at(index), "content", block_index, "tool_use_id")
                    text = f"{show(tool_id)} is no server_tool_use before it"
                    report.add(rules.PAIRING_SERVER, path, text)
