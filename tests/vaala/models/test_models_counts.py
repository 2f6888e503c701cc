"""Token counts as servers report them: whatever stands there, reading it never fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vaala.models.anthropic.usage import UsageReader
from vaala.models.chat.usage import read_usage as read_chat
from vaala.models.gemini.usage import read_usage as read_gemini
from vaala.models.responses.usage import read_usage as read_responses
from vaala_protocol.settings import Usage

READERS: list[tuple[Callable[[dict[str, Any]], Usage | None], str]] = [
    (read_chat, "completion_tokens"),
    (read_responses, "output_tokens"),
    (read_gemini, "candidatesTokenCount"),
    (lambda fields: UsageReader().read(fields), "output_tokens"),
]


@pytest.mark.parametrize(("read", "field"), READERS)
@pytest.mark.parametrize(
    ("told", "counted"),
    [
        (7, 7),
        (7.0, 7),
        (-7, 0),
        (10**400, 2**53 - 1),
        (1e300, 2**53 - 1),
        (float("inf"), 0),
        (float("nan"), 0),
        (True, 0),
        ("7", 0),
        (None, 0),
    ],
)
def test_a_count_is_a_number_that_every_reader_of_json_holds(
    read: Callable[[dict[str, Any]], Usage | None], field: str, told: object, counted: int
) -> None:
    usage = read({field: told})
    assert (usage.output if usage is not None else 0) == counted
