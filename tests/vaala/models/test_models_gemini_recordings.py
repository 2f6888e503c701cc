"""Recorded answers of Gemini decode to what the vendor's own client made of them."""

from __future__ import annotations

import itertools
import json
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
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.failures import Origin, failure_of_status
from vaala.models.gemini.decode import GeminiDecoder
from vaala_protocol.settings import Usage

ROOT = Path(__file__).parent / "recordings" / "gemini"
EXPECTED: dict[str, dict[str, Any]] = json.loads((ROOT / "expected.json").read_text("utf-8"))
ANSWERS = sorted(name for name, entry in EXPECTED.items() if entry["status"] == 200)
STREAMED_ARGUMENTS = "no-args-tool.sse"
BLOCKED = "prompt-blocked.json"


def decode(pieces: Iterable[bytes]) -> tuple[list[ModelEvent], ModelFailure | None]:
    decoder = GeminiDecoder(Origin("recorded"))
    return decoded(decoder, pieces)


def body(name: str) -> bytes:
    return (ROOT / name).read_bytes()


def calls(events: Iterable[ModelEvent]) -> list[tuple[str, Any]]:
    starts: dict[int, str] = {}
    found: list[tuple[str, Any]] = []
    for event in events:
        if isinstance(event, CallStart):
            starts[event.index] = event.name
        elif isinstance(event, CallEnd):
            found.append((starts[event.index], json.loads(event.arguments)))
    return found


def signatures(events: Iterable[ModelEvent]) -> list[str]:
    found: list[str] = []
    for event in events:
        if isinstance(event, ProviderBlob):
            parts = event.data.get("parts", [event.data])
            found += [part["thoughtSignature"] for part in parts if "thoughtSignature" in part]
    return found


@pytest.mark.parametrize("name", ANSWERS)
def test_every_split_gives_the_same(name: str) -> None:  # B1
    data = body(name)
    whole, failure = decode([data])
    told = None if failure is None else (failure.kind, failure.message)
    for seed in range(6):
        cuts: Iterable[int] = range(1, len(data))  # one byte each
        if seed:
            rng = random.Random(seed)
            cuts = sorted(rng.sample(range(1, len(data)), min(40, len(data) // 2)))
        borders = [0, *cuts, len(data)]
        events, again = decode(data[a:b] for a, b in itertools.pairwise(borders))
        assert events == whole
        assert (None if again is None else (again.kind, again.message)) == told


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != BLOCKED])
def test_values_are_those_of_the_vendors_client(name: str) -> None:
    expected = EXPECTED[name]
    events, failure = decode([body(name)])
    assert failure is None
    said = "".join(event.text for event in events if isinstance(event, TextDelta))
    assert said == expected["text"]
    if "thoughts" in expected:
        thoughts = "".join(event.text for event in events if isinstance(event, ReasoningDelta))
        assert thoughts == expected["thoughts"]
        assert len(signatures(events)) == expected["signatures"]
    if name != STREAMED_ARGUMENTS:
        wanted = [(call["name"], call.get("args", {})) for call in expected["function_calls"]]
        assert calls(events) == wanted
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert finish.raw == expected["finish_reason"]


@pytest.mark.parametrize("name", [name for name in ANSWERS if name != BLOCKED])
def test_usage_adds_up_to_the_total_of_the_server(name: str) -> None:  # B8
    counted = {key.replace("_", "").lower(): n for key, n in EXPECTED[name]["usage"].items()}
    events, _ = decode([body(name)])
    usage = [event.usage for event in events if isinstance(event, UsageReport)][-1]
    assert usage.total == counted["totaltokencount"]
    assert usage.output == counted.get("candidatestokencount", 0)
    assert usage.reasoning == counted.get("thoughtstokencount", 0)


def test_streamed_arguments_are_put_together() -> None:
    events, _ = decode([body(STREAMED_ARGUMENTS)])
    assert calls(events) == [
        ("read_theme", {}),
        *(("read_screen", {"id": screen}) for screen in "ABC"),
    ]
    assert events[-1] == Finish("tool_calls", "STOP")


def test_signatures_are_kept_byte_for_byte_with_their_part() -> None:  # A7-2
    events, _ = decode([body("tool-signature-1.sse")])
    (blob,) = [event for event in events if isinstance(event, ProviderBlob)]
    first = body("tool-signature-1.sse").splitlines()[0].removeprefix(b"data: ")
    (part,) = json.loads(first)["candidates"][0]["content"]["parts"]
    assert blob == ProviderBlob(0, {"thoughtSignature": part["thoughtSignature"]})


def test_the_signed_part_of_a_longer_text_is_told_by_its_length() -> None:
    events, _ = decode([body("thinking.sse")])
    (blob,) = [event for event in events if isinstance(event, ProviderBlob)]
    thought, signed, rest = blob.data["parts"]
    assert (blob.part, list(thought), list(rest)) == ("message", ["thought"], ["text"])
    said = [event.text for event in events if isinstance(event, TextDelta)]
    assert (signed["text"], rest["text"]) == (len(said[0]), len("".join(said[1:])))


@pytest.mark.parametrize(
    ("name", "finish"),
    [
        ("safety-nonstream.json", Finish("content_filter", "SAFETY")),
        ("unexpected-tool-call.json", Finish("malformed_call", "UNEXPECTED_TOOL_CALL")),
        ("tools-iter-1.sse", Finish("tool_calls", "STOP")),
        ("array-tools-3.json", Finish("stop", "STOP")),
    ],
)
def test_ends(name: str, finish: Finish) -> None:  # A7
    assert decode([body(name)])[0][-1] == finish


def test_a_blocked_prompt_is_refused_and_not_asked_again() -> None:
    _, failure = decode([body(BLOCKED)])
    assert failure is not None
    assert (failure.kind, failure.retryable) == ("refused", False)
    assert "MODEL_ARMOR" in failure.message
    assert "The prompt violated Prompt Injection and Jailbreak filters." in failure.message


def test_the_tools_of_the_server_count_as_input() -> None:
    events, _ = decode([body("web-search.sse")])
    usage = [event.usage for event in events if isinstance(event, UsageReport)][-1]
    assert usage == Usage(input=17 + 102, output=241, reasoning=412)


@pytest.mark.parametrize(
    ("name", "kind", "retryable", "wait_s"),
    [
        ("err-400-vertex.json", "invalid_request", False, None),
        ("err-429-retryinfo.json", "rate_limit", True, 34.4),
    ],
)
def test_errors(name: str, kind: str, retryable: bool, wait_s: float | None) -> None:  # B4
    failure = failure_of_status(Origin("gemini"), EXPECTED[name]["status"], {}, body(name))
    assert (failure.kind, failure.retryable, failure.retry_after_s) == (kind, retryable, wait_s)
