"""Recorded answers of the Messages API decode to what Anthropic's own client made of them."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.models.decoding import decoded
from vaala.models.anthropic.decode import AnthropicDecoder
from vaala.models.base import (
    CallEnd,
    CallStart,
    Finish,
    ModelEvent,
    ModelFailure,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.failures import Origin, failure_of_status
from vaala_protocol.settings import Usage

FOLDER = Path(__file__).parent / "recordings" / "anthropic"
EXPECTED: dict[str, dict[str, Any]] = json.loads((FOLDER / "expected.json").read_text("utf-8"))
ANSWERS = [name for name, entry in EXPECTED.items() if entry["status"] == 200]
WITH_VALUES = [name for name in ANSWERS if "text" in EXPECTED[name]]


def decode(pieces: Iterable[bytes]) -> tuple[list[ModelEvent], ModelFailure | None]:
    decoder = AnthropicDecoder(Origin("recorded"))
    return decoded(decoder, pieces)


def summary(pieces: Iterable[bytes]) -> dict[str, Any]:
    events, failure = decode(pieces)
    starts = {event.index: event.name for event in events if isinstance(event, CallStart)}
    ends = {event.index: event.arguments for event in events if isinstance(event, CallEnd)}
    reports = [event.usage for event in events if isinstance(event, UsageReport)]
    return {
        "text": "".join(event.text for event in events if isinstance(event, TextDelta)),
        "thinking": "".join(e.text for e in events if isinstance(e, ReasoningDelta)),
        "calls": [(starts[index], ends.get(index)) for index in sorted(starts)],
        "blobs": [event for event in events if isinstance(event, ProviderBlob)],
        "usage": reports[-1] if reports else None,
        "finish": [event for event in events if isinstance(event, Finish)],
        "failure": None if failure is None else (failure.kind, failure.message),
    }


def recorded(name: str) -> bytes:
    return (FOLDER / name).read_bytes()


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
def test_every_split_gives_the_same(name: str, end: bytes) -> None:  # B1-1 B1-2
    body = recorded(name)
    whole = summary([body])
    if name.endswith(".sse"):
        body = body.replace(b"\n", end)
    assert summary(body[at : at + 1] for at in range(len(body))) == whole
    for seed in range(5):
        rng = random.Random(seed)
        cuts = sorted(rng.sample(range(len(body)), min(40, len(body) // 2)))
        borders = [0, *cuts, len(body)]
        assert summary(body[a:b] for a, b in itertools.pairwise(borders)) == whole


WRONG_IN_THE_SDK = {
    # It joins what two messages said into one call, and gives the other one nothing.
    "spliced-message-start.sse": [
        ("test-tool", '{"value":"Spark{'),
        ("test-tool", '{"value":"Sparkle Day"}'),
    ]
}


@pytest.mark.parametrize("name", WITH_VALUES)
def test_values_are_those_of_the_vendors_client(name: str) -> None:
    expected, ours = EXPECTED[name], summary([recorded(name)])
    assert ours["failure"] is None
    assert ours["text"] == expected["text"]
    assert ours["thinking"] == expected["thinking"]
    if name in WRONG_IN_THE_SDK:
        assert ours["calls"] == WRONG_IN_THE_SDK[name]
    else:
        calls = [(call, json.loads(arguments or "{}")) for call, arguments in ours["calls"]]
        assert calls == [(call["name"], call["input"]) for call in expected["tool_calls"]]
    (finish,) = ours["finish"]
    assert finish.raw == expected["stop_reason"]
    assert finish.reason == ("tool_calls" if ours["calls"] else "stop")
    usage = expected["usage"]
    if "iterations" not in usage:
        assert (ours["usage"].input, ours["usage"].output) == (
            usage["input_tokens"],
            usage["output_tokens"],
        )
        assert ours["usage"].cache_read == usage.get("cache_read_input_tokens", 0)
        assert ours["usage"].cache_write == usage.get("cache_creation_input_tokens", 0)


def test_what_a_summary_cost_is_counted() -> None:
    assert summary([recorded("compaction.sse")])["usage"] == Usage(
        input=281, output=91, cache_read=55_096
    )


KEPT = {"thinking": "thinking", "text": "text", "call": "tool_use"}


@pytest.mark.parametrize("name", WITH_VALUES)
def test_what_cannot_be_said_otherwise_is_kept_in_its_order(name: str) -> None:
    blobs = summary([recorded(name)])["blobs"]
    blocks = EXPECTED[name]["blocks"]
    if set(blocks) <= {"text", "tool_use"} or name in WRONG_IN_THE_SDK:
        assert blobs == []
        return
    (blob,) = blobs
    assert blob.part == (0 if "tool_use" in blocks else "message")
    entries = blob.data["blocks"]
    kinds = [entry["block"]["type"] if "block" in entry else next(iter(entry)) for entry in entries]
    assert [KEPT.get(kind, kind) for kind in kinds] == blocks


def test_blocks_of_the_servers_own_tools_are_kept_whole() -> None:
    (blob,) = summary([recorded("code-execution.sse")])["blobs"]
    call, result = (entry["block"] for entry in blob.data["blocks"] if "block" in entry)
    assert call["input"] == {"command": 'echo "65465-6544 * 65464-6+1.02255" | bc -l'}
    assert result["tool_use_id"] == call["id"]
    assert result["content"]["stdout"] == "-428330955.97745\n"


def test_an_error_without_its_wrapper() -> None:  # B2-2
    ours = summary([recorded("llamacpp-midstream-error.sse")])
    kind, message = ours["failure"]
    assert kind == "overloaded"
    assert "does not match the expected peg-native format" in message
    assert ours["finish"] == []


KINDS = {
    "err-404-model.json": "invalid_request",
    "err-400-effort.json": "invalid_request",
    "llamacpp-overflow.json": "context_overflow",
}


@pytest.mark.parametrize("name", [name for name in EXPECTED if name not in ANSWERS])
def test_recorded_errors_have_their_kind(name: str) -> None:  # B4-3
    failure = failure_of_status(Origin("recorded"), EXPECTED[name]["status"], {}, recorded(name))
    assert (failure.kind, failure.retryable) == (KINDS[name], False)
