"""A strict reading of Anthropic Messages requests.

It accepts what the API, Bedrock and Vertex all accept. ``anthropic_rules`` has every rule with its
source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.anthropic_cache import check_cache
from vaala.testing.validators.anthropic_fields import check_fields, thinking_type
from vaala.testing.validators.anthropic_messages import check_messages, check_system
from vaala.testing.validators.anthropic_order import check_order
from vaala.testing.validators.anthropic_thinking import check_thinking_blocks
from vaala.testing.validators.anthropic_tools import check_tools
from vaala.testing.validators.common import (
    Report,
    Violation,
    as_array,
    as_object,
    read_body,
)
from vaala.testing.validators.limits import CLAUDE_MAX_BODY_BYTES


def check_anthropic_request(
    body: Mapping[str, Any] | bytes,
    *,
    alternation: bool = False,
    tools_demanded: bool = False,
    thinks_unasked: bool = False,
    extra_keys: Collection[str] = (),
    max_body_bytes: int = CLAUDE_MAX_BODY_BYTES,
) -> list[Violation]:
    """Every reason why a strict server would refuse ``body``; an empty list when there is none.

    Pass the bytes as sent where you have them: only they show broken UTF-8 and repeated names.
    ``alternation`` demands user and assistant in turn, which the API itself no longer does.
    ``tools_demanded`` refuses tool blocks in a request that offers no tools, as Bedrock does.
    ``thinks_unasked`` is for models that think unless they are told not to.
    ``extra_keys`` are further top-level names that the server knows; their values are checked as
    text only. ``max_body_bytes`` bounds the body as UTF-8. Never raises for a bad request; takes
    time linear in its size.
    """
    report = Report()
    request = read_body(body, max_body_bytes, report)
    if request is None:
        return report.violations
    check_fields(request, extra_keys, report)
    check_tools(request, tools_demanded, report)
    check_cache(request, report)
    if "system" in request:
        check_system(request["system"], report)
    if "messages" in request:
        messages = as_array(request["messages"])
        if not messages:
            report.add(rules.MESSAGES, "$.messages", "at least one message is required")
        elif check_messages(messages, report):
            objects = [message for value in messages if (message := as_object(value)) is not None]
            check_order(objects, alternation, report)
            check_thinking_blocks(objects, thinking_type(request, thinks_unasked), report)
    return report.violations
