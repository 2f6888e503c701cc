"""Recorded answers of real providers decode to what the vendors' own clients made of them.

The recordings are no part of the project: they are found by VAALA_RECORDINGS, or beside it.
"""

from __future__ import annotations

import itertools
import json
import os
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.models.decoding import decoded
from vaala.models.base import (
    CallEnd,
    CallStart,
    Finish,
    ModelEvent,
    ModelFailure,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.chat.decode import ChatDecoder
from vaala.models.failures import Origin, failure_of_status

ROOT = Path(
    os.environ.get("VAALA_RECORDINGS") or Path(__file__).parents[4] / "shared" / "recordings"
)
MISSING = not (ROOT / "manifest.json").is_file()
pytestmark = pytest.mark.skipif(
    MISSING, reason=f"no recordings at {ROOT}: set VAALA_RECORDINGS to their folder"
)
MANIFEST: list[dict[str, Any]] = (
    [] if MISSING else json.loads((ROOT / "manifest.json").read_text("utf-8"))
)
CHAT = [
    entry
    for entry in MANIFEST
    if entry["id"].startswith(("openai-chat/", "llama.cpp-b11434/chat-"))
]
ANSWERS = [entry for entry in CHAT if entry["status"] == 200]
ERRORS = [entry for entry in MANIFEST if entry["status"] != 200 and "embed" not in entry["id"]]


def names(entries: Iterable[dict[str, Any]]) -> list[str]:
    return [entry["id"] for entry in entries]


def decode(pieces: Iterable[bytes]) -> tuple[list[ModelEvent], ModelFailure | None]:
    decoder = ChatDecoder(Origin("recorded"))
    return decoded(decoder, pieces)


def summary(pieces: Iterable[bytes]) -> dict[str, Any]:
    events, failure = decode(pieces)
    starts = {event.index: event.name for event in events if isinstance(event, CallStart)}
    ends = {event.index: event.arguments for event in events if isinstance(event, CallEnd)}
    reports = [event.usage for event in events if isinstance(event, UsageReport)]
    finishes = [event for event in events if isinstance(event, Finish)]
    return {
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "reasoning": "".join(e.text for e in events if isinstance(e, ReasoningDelta)),
        "calls": [(starts[index], ends.get(index)) for index in sorted(starts)],
        "usage": reports[-1] if reports else None,
        "finish": finishes[-1] if finishes else None,
        "failure": None if failure is None else (failure.kind, failure.message),
    }


@pytest.mark.parametrize("entry", ANSWERS, ids=names(ANSWERS))
def test_every_split_gives_the_same(entry: dict[str, Any]) -> None:  # B1
    body = (ROOT / entry["file"]).read_bytes()
    whole = summary([body])
    assert summary(body[at : at + 1] for at in range(len(body))) == whole
    for seed in range(5):
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(len(body)), min(40, len(body) // 2)))
        borders = [0, *cuts, len(body)]
        assert summary(body[a:b] for a, b in itertools.pairwise(borders)) == whole


COMPARED = [entry for entry in ANSWERS if "text" in entry.get("expected", {})]
WRONG_IN_THE_SDK = {
    # The vendor's client joins repeated names and ids.
    "openai-chat/openrouter-kimi-a": [("llm_version", "{}")],
    "openai-chat/openrouter-null-args": [("llm_version", "")],
}


@pytest.mark.parametrize("entry", COMPARED, ids=names(COMPARED))
def test_values_are_those_of_the_vendors_client(entry: dict[str, Any]) -> None:
    expected = entry["expected"]
    ours = summary([(ROOT / entry["file"]).read_bytes()])
    assert ours["text"] == (expected["text"] or expected["refusal"] or "")
    assert ours["reasoning"] == expected["reasoning"]
    calls = [(call["name"], call["arguments"]) for call in expected["tool_calls"]]
    assert ours["calls"] == WRONG_IN_THE_SDK.get(entry["id"], calls)
    if expected["error"] is not None:
        kind, message = ours["failure"]
        assert kind == "incomplete"
        assert expected["error"].removeprefix("APIError: ") in message
        return
    assert ours["failure"] is None
    usage = expected["usage"]
    assert ours["usage"].input + ours["usage"].cache_read == usage["prompt_tokens"]
    assert ours["usage"].cache_read == usage["prompt_tokens_details"]["cached_tokens"]
    assert ours["usage"].total == usage["total_tokens"]  # xAI counts reasoning apart
    reason = "tool_calls" if calls else "refusal" if expected["refusal"] else "stop"
    assert (ours["finish"].reason, ours["finish"].raw) == (reason, expected["finish_reason"] or "")


def test_a_filtered_answer_without_a_message() -> None:  # A7-3
    body = (ROOT / "openai-chat/azure-content-filter.json").read_bytes()
    assert summary([body])["finish"] == Finish("content_filter", "content_filter")


def test_llama_cpp_call() -> None:
    ours = summary([(ROOT / "llama.cpp-b11434/chat-tool.sse").read_bytes()])
    assert ours["calls"] == [("get_weather", '{\n\n"city": "Paris"\n}')]
    assert ours["finish"] == Finish("tool_calls", "tool_calls")
    assert (ours["usage"].input, ours["usage"].output) == (200, 16)


def test_llama_cpp_error_in_the_stream() -> None:  # B2-2
    ours = summary([(ROOT / "llama.cpp-b11434/chat-midstream-error.sse").read_bytes()])
    assert ours["failure"] == (
        "overloaded",
        "recorded: the server failed or is overloaded (HTTP 500): The model produced output"
        " that does not match the expected peg-native format",
    )
    assert ours["finish"] is None


KINDS = {
    "anthropic/err-404-model": ("invalid_request", False),
    "anthropic/err-400-effort": ("invalid_request", False),
    "openai-chat/err-404-model": ("invalid_request", False),
    "openai-chat/err-429-openrouter": ("rate_limit", True),
    "openai-chat/err-401-azure": ("auth", False),
    "openai-responses/err-400-reasoning-orphan": ("invalid_request", False),  # A7-4
    "openai-responses/err-400-model": ("invalid_request", False),
    "gemini/err-400-vertex": ("invalid_request", False),
    "gemini/err-429-retryinfo": ("rate_limit", True),
    "llama.cpp-b11434/anthropic-overflow.json": ("context_overflow", False),
    "llama.cpp-b11434/auth-401.json": ("auth", False),
}


@pytest.mark.parametrize("entry", ERRORS, ids=names(ERRORS))
def test_recorded_errors_have_their_kind(entry: dict[str, Any]) -> None:
    failure = failure_of_status(
        Origin("recorded"),
        entry["status"],
        entry.get("headers", {}),
        (ROOT / entry["file"]).read_bytes(),
    )
    assert (failure.kind, failure.retryable) == KINDS[entry["id"]]
    assert failure.status == entry["status"]


def test_the_true_reason_behind_a_gateway_is_told() -> None:
    body = (ROOT / "openai-chat/err-429-openrouter.json").read_bytes()
    failure = failure_of_status(Origin("openrouter"), 429, {}, body)
    assert "is temporarily rate-limited upstream" in failure.message


def test_retry_info_in_the_body_is_a_lower_bound() -> None:
    body = (ROOT / "gemini/err-429-retryinfo.json").read_bytes()
    assert failure_of_status(Origin("gemini"), 429, {}, body).retry_after_s == 34.4
