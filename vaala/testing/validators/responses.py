"""A strict reading of OpenAI Responses requests that leave no state on the server.

It accepts what the API, Azure, and the servers that turn such a request into chat messages all
accept. ``responses_rules`` has every rule with its source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from vaala.testing.validators import responses_rules as rules
from vaala.testing.validators.common import (
    Report,
    Violation,
    as_array,
    as_object,
    is_blank,
    read_body,
)
from vaala.testing.validators.limits import MAX_BODY_BYTES
from vaala.testing.validators.responses_fields import check_fields
from vaala.testing.validators.responses_items import check_items
from vaala.testing.validators.responses_order import check_order
from vaala.testing.validators.responses_tools import check_tools


def check_responses_request(
    body: Mapping[str, Any] | bytes,
    *,
    stateless: bool = True,
    extra_keys: Collection[str] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
) -> list[Violation]:
    """Every reason why a strict server would refuse ``body``; an empty list when there is none.

    Pass the bytes as sent where you have them: only they show broken UTF-8 and repeated names.
    ``stateless`` demands that the request keeps nothing at the server and refers to nothing that it
    keeps. ``extra_keys`` are further top-level names that the server knows; their values are
    checked as text only. ``max_body_bytes`` bounds the body as UTF-8. Never raises for a bad
    request; takes time linear in its size.
    """
    report = Report()
    request = read_body(body, max_body_bytes, report)
    if request is None:
        return report.violations
    check_fields(request, stateless, extra_keys, report)
    check_tools(request, report)
    if "input" in request:
        _check_input(request["input"], stateless, report)
    return report.violations


def _check_input(value: object, stateless: bool, report: Report) -> None:
    path = "$.input"
    items = as_array(value)
    if isinstance(value, str):
        if is_blank(value):
            report.add(rules.CONTENT_EMPTY, path, "blank text")
    elif not items:
        report.add(rules.INPUT, path, "is neither text nor an array with at least one item")
    elif check_items(items, stateless, report):
        check_order([item for it in items if (item := as_object(it)) is not None], report)
