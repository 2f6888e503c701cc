"""A strict reading of OpenAI chat-completions requests.

It accepts what the strictest servers that speak this format accept (the API description, DeepSeek,
Groq, Mistral, and the chat templates that vLLM, llama.cpp and LM Studio run), so a request that
passes is fit for any of them. ``chat_rules`` has every rule with its source.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from vaala.testing.validators import chat_rules as rules
from vaala.testing.validators.chat_fields import check_fields
from vaala.testing.validators.chat_messages import check_messages
from vaala.testing.validators.chat_order import check_order
from vaala.testing.validators.chat_tools import check_tools
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    Violation,
    as_array,
    as_object,
    read_body,
)
from vaala.testing.validators.limits import MAX_BODY_BYTES


def validate_chat_request(
    body: Mapping[str, Any] | bytes,
    *,
    alternation: bool = False,
    mistral_call_ids: bool = False,
    extra_keys: Collection[str] = (),
    extra_message_keys: Collection[str] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
) -> list[Violation]:
    """Every reason why a strict server would refuse ``body``; an empty list when there is none.

    Pass the bytes as sent where you have them: only they show broken UTF-8 and repeated names.
    ``alternation`` demands user and assistant in turn, as some chat templates do (tool calls and
    their results aside). ``mistral_call_ids`` demands Mistral's nine letters and digits.
    ``extra_keys`` and ``extra_message_keys`` are further names that the server at hand knows, such
    as ``reasoning_content``; their values are checked as text only. ``max_body_bytes`` bounds the
    body as UTF-8. Never raises for a bad request; takes time linear in its size.
    """
    report = Report()
    request = read_body(body, max_body_bytes, report)
    if request is None:
        return report.violations
    check_fields(request, extra_keys, report)
    check_tools(request, report)
    if "messages" in request:
        messages = as_array(request["messages"])
        if not messages:
            report.add(rules.MESSAGES, "$.messages", "is no array with at least one message")
        elif check_messages(messages, extra_message_keys, mistral_call_ids, report):
            check_order(_objects(messages), alternation, report)
    return report.violations


def _objects(messages: list[object]) -> list[JsonObject]:
    return [message for value in messages if (message := as_object(value)) is not None]
