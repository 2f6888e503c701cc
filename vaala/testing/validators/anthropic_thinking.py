"""Where thinking blocks stand among the others of an answer, and when they must."""

from __future__ import annotations

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.anthropic_messages import blocks_of
from vaala.testing.validators.common import JsonObject, Report, child, show

_THINKING = ("thinking", "redacted_thinking")


def check_thinking_blocks(messages: list[JsonObject], kind: str, report: Report) -> None:
    """Check them for a request whose thinking is of ``kind``.

    Only the answer that still waits for its next step is held to the kind: what came before the
    last prompt is left out by the server.
    """
    for index, message in enumerate(messages):
        kinds = _kinds(message)
        if message["role"] == "assistant" and kinds and kinds[-1] in _THINKING:
            path = child("$", "messages", index, "content", len(kinds) - 1)
            text = f"the final block in an assistant message cannot be {kinds[-1]}"
            report.add(rules.THINKING_LAST, path, text)
    if _is_prompt(messages[-1]):
        return
    start = max((i for i, message in enumerate(messages) if _is_prompt(message)), default=-1) + 1
    _check_open_answer(messages, start, kind, report)


def _check_open_answer(messages: list[JsonObject], start: int, kind: str, report: Report) -> None:
    answers = [i for i in range(start, len(messages)) if messages[i]["role"] == "assistant"]
    if kind == "enabled" and answers:
        first = (*_kinds(messages[answers[0]]), None)[0]
        if first not in _THINKING:
            text = f"expected thinking or redacted_thinking, but found {show(first)}"
            report.add(rules.THINKING_FIRST, child("$", "messages", answers[0]), text)
    if kind == "disabled":
        for index in answers:
            if any(found in _THINKING for found in _kinds(messages[index])):
                text = "cannot contain thinking when thinking is disabled"
                report.add(rules.THINKING_OFF, child("$", "messages", index), text)


def _is_prompt(message: JsonObject) -> bool:
    """Results alone go on with an answer; a text beside them is a new prompt."""
    kinds = _kinds(message)
    only_results = kinds != [] and all(kind == "tool_result" for kind in kinds)
    return message["role"] == "user" and not only_results


def _kinds(message: JsonObject) -> list[object]:
    return [block.get("type") for block in blocks_of(message)]
