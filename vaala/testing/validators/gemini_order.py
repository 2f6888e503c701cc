"""How turns follow each other, and each function call with its one response."""

from __future__ import annotations

from collections import Counter
from typing import cast

from vaala.testing.validators import gemini_rules as rules
from vaala.testing.validators.common import JsonArray, JsonObject, Report, as_object, child, show
from vaala.testing.validators.values import is_text


def check_order(contents: list[JsonObject], signatures: bool, report: Report) -> None:
    """Check the sequence of turns, whose parts all have their fields by lower camel names.

    ``signatures``: the model demands one on the first call of each step of the current turn.
    """
    for index, content in enumerate(contents):
        calls, responses = data_of(content, "functionCall"), data_of(content, "functionResponse")
        if calls:
            if index == 0 or contents[index - 1]["role"] != "user":
                message = "a call comes immediately after a user turn or after a response turn"
                report.add(rules.ORDER_CALL, _at(index), message)
            after = contents[index + 1] if index + 1 < len(contents) else None
            _check_answers(calls, after, _at(index), report)
        if responses and (index == 0 or not data_of(contents[index - 1], "functionCall")):
            message = "a response turn comes immediately after a function call turn"
            report.add(rules.PAIRING_ORPHAN, _at(index), message)
    if contents[-1]["role"] != "user":
        message = "the last turn is from user or holds function responses"
        report.add(rules.ORDER_LAST, _at(len(contents) - 1), message)
    if signatures:
        _check_signatures(contents, report)


def data_of(content: JsonObject, kind: str) -> list[JsonObject]:
    """The data of this kind in the parts of a turn."""
    return [data for part in _parts(content) if (data := as_object(part.get(kind))) is not None]


def _parts(content: JsonObject) -> list[JsonObject]:
    return cast("list[JsonObject]", cast("JsonArray", content["parts"]))


def _at(index: int) -> str:
    return child("$", "contents", index)


def _check_answers(
    calls: list[JsonObject], after: JsonObject | None, path: str, report: Report
) -> None:
    responses = [] if after is None else data_of(after, "functionResponse")
    if len(responses) != len(calls):
        message = f"{len(calls)} function calls and {len(responses)} function responses"
        report.add(rules.PAIRING_COUNT, path, message)
    elif _are_named(calls) and _are_named(responses) and _keys(calls) != _keys(responses):
        message = f"calls {show(sorted(_keys(calls)))}, responses {show(sorted(_keys(responses)))}"
        report.add(rules.PAIRING_MATCH, path, message)


def _are_named(entries: list[JsonObject]) -> bool:
    return all(is_text(entry.get("name")) for entry in entries)


def _keys(entries: list[JsonObject]) -> Counter[tuple[str, str]]:
    """Names and ids: a response bears those of its call."""
    return Counter((str(entry.get("name")), str(entry.get("id", ""))) for entry in entries)


def _check_signatures(contents: list[JsonObject], report: Report) -> None:
    start = max((i for i, content in enumerate(contents) if _is_prompt(content)), default=-1)
    for index in range(start + 1, len(contents)):
        for part_index, part in enumerate(_parts(contents[index])):
            if "functionCall" not in part:
                continue
            if "thoughtSignature" not in part:
                path = child(_at(index), "parts", part_index)
                message = "function call is missing a thought_signature"
                report.add(rules.SIGNATURE_MISSING, path, message)
            break


def _is_prompt(content: JsonObject) -> bool:
    return content["role"] == "user" and not data_of(content, "functionResponse")
