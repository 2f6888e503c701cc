"""A strict reading of Gemini generateContent requests.

It accepts what the Gemini API and Vertex both accept. ``gemini_rules`` has every rule with its
source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from vaala.testing.validators import gemini_rules as rules
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    Violation,
    as_array,
    child,
    read_body,
)
from vaala.testing.validators.gemini_fields import fields_of
from vaala.testing.validators.gemini_order import check_order
from vaala.testing.validators.gemini_parts import check_content, check_system
from vaala.testing.validators.gemini_settings import (
    check_calls_beside_json,
    check_generation,
    check_safety,
)
from vaala.testing.validators.gemini_tools import check_tools
from vaala.testing.validators.limits import GEMINI_MAX_BODY_BYTES

_KNOWN_KEYS = frozenset(
    (
        *("contents", "systemInstruction", "tools", "toolConfig", "safetySettings"),
        *("generationConfig", "cachedContent", "labels"),
    )
)


def check_gemini_request(
    body: Mapping[str, Any] | bytes,
    *,
    signatures: bool = False,
    extra_keys: Collection[str] = (),
    max_body_bytes: int = GEMINI_MAX_BODY_BYTES,
) -> list[Violation]:
    """Every reason why a strict server would refuse ``body``; an empty list when there is none.

    Pass the bytes as sent where you have them: only they show broken UTF-8 and repeated names.
    ``signatures`` demands a thought signature on the calls of the current turn, as models from
    Gemini 3 on do; they alone call functions beside an answer in JSON. ``extra_keys`` are further
    top-level names that the server knows, in lower camel case; their values are checked as text
    only. ``max_body_bytes`` bounds the body as UTF-8. Never raises for a bad request; takes time
    linear in its size.
    """
    report = Report()
    request = read_body(body, max_body_bytes, report)
    if request is None:
        return report.violations
    fields = fields_of(request, {*_KNOWN_KEYS, *extra_keys}, "$", report) or {}
    _check_contents(fields.get("contents"), signatures, report)
    check_tools(fields, report)
    if "systemInstruction" in fields:
        check_system(fields["systemInstruction"], "$.systemInstruction", report)
    if "generationConfig" in fields:
        check_generation(fields["generationConfig"], report)
        if not signatures:
            check_calls_beside_json(fields, report)
    if "safetySettings" in fields:
        check_safety(fields["safetySettings"], report)
    return report.violations


def _check_contents(value: object, signatures: bool, report: Report) -> None:
    contents = as_array(value)
    if not contents:
        report.add(rules.CONTENTS, "$.contents", "contents is not specified")
        return
    turns: list[JsonObject] = []
    for index, item in enumerate(contents):
        turn = check_content(item, child("$", "contents", index), report)
        if turn is not None:
            turns.append(turn)
    if len(turns) == len(contents):
        check_order(turns, signatures, report)
