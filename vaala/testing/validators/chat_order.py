"""How messages follow each other: roles, and each tool call with its one result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from vaala.testing.validators import chat_rules as rules
from vaala.testing.validators.common import JsonObject, Report, as_array, as_object, child, show


def check_order(messages: list[JsonObject], alternation: bool, report: Report) -> None:
    """Check the sequence. Each message has a legal role already, and there is at least one."""
    roles = [message["role"] for message in messages]
    for index, role in enumerate(roles[1:], start=1):
        if role == "system":
            message = "a system message stands only at the beginning"
            report.add(rules.ORDER_SYSTEM, _at(index), message)
    for index, (before, after) in enumerate(pairwise(messages), start=1):
        # After calls a tool message is missing, which is the fault to tell.
        if before["role"] == after["role"] == "assistant" and "tool_calls" not in before:
            message = "an assistant message right after an assistant message"
            report.add(rules.ORDER_ASSISTANT_RUN, _at(index), message)
    if roles[-1] not in ("user", "tool"):
        message = f"the last message is from user or tool, not {roles[-1]}"
        report.add(rules.ORDER_LAST, _at(len(roles) - 1), message)
    if "user" not in roles:
        report.add(rules.ORDER_NO_USER, "$.messages", "no user message")
    if alternation:
        _check_alternation(messages, report)
    _check_pairing(messages, report)


def _at(index: int) -> str:
    return child("$", "messages", index)


def _check_alternation(messages: list[JsonObject], report: Report) -> None:
    """Templates leave tool calls and results aside and want user, assistant, user, ..."""
    expected = "user"
    for index, message in enumerate(messages):
        role = message["role"]
        if role in ("system", "tool") or "tool_calls" in message:
            continue
        if role != expected:
            text = f"expected {expected} here, got {role}"
            report.add(rules.ORDER_ALTERNATION, _at(index), text)
        expected = "assistant" if role == "user" else "user"


@dataclass(slots=True)
class _Round:
    """The calls of one assistant message, until a message other than a result follows."""

    unanswered: dict[str, str] = field(default_factory=dict)
    answered: set[str] = field(default_factory=set)


def _check_pairing(messages: list[JsonObject], report: Report) -> None:
    current = _Round()
    known_ids: set[str] = set()
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _take_result(message, current, _at(index), report)
            continue
        _close(current, report)
        current = _Round()
        for call_id, path in _calls_of(message, _at(index)):
            if call_id in known_ids:
                text = f"the id {show(call_id)} names an earlier call"
                report.add(rules.PAIRING_DUPLICATE_ID, path, text)
            known_ids.add(call_id)
            current.unanswered[call_id] = path
    _close(current, report)


def _take_result(message: JsonObject, current: _Round, path: str, report: Report) -> None:
    call_id = message.get("tool_call_id")
    path = child(path, "tool_call_id")
    if isinstance(call_id, str) and call_id in current.unanswered:
        del current.unanswered[call_id]
        current.answered.add(call_id)
    elif isinstance(call_id, str) and call_id in current.answered:
        message_text = f"a second result for the call {show(call_id)}"
        report.add(rules.PAIRING_DUPLICATE_RESULT, path, message_text)
    else:
        message_text = f"{show(call_id)} is no call of the assistant message before it"
        report.add(rules.PAIRING_ORPHAN, path, message_text)


def _close(current: _Round, report: Report) -> None:
    for call_id, path in current.unanswered.items():
        text = f"the call {show(call_id)} has no tool message before the next role"
        report.add(rules.PAIRING_MISSING, path, text)


def _calls_of(message: JsonObject, path: str) -> Iterator[tuple[str, str]]:
    for index, value in enumerate(as_array(message.get("tool_calls")) or ()):
        call = as_object(value) or {}
        call_id = call.get("id")
        if isinstance(call_id, str):
            yield call_id, child(path, "tool_calls", index, "id")
