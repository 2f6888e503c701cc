"""Requests that real servers took, and some that they refused, as the validators read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from vaala.testing.validators import (
    Violation,
    check_anthropic_request,
    check_gemini_request,
    check_responses_request,
)

REQUESTS = Path(__file__).parent / "requests"
TAKEN = sorted(REQUESTS.glob("*.json"))


def check(path: Path) -> list[Violation]:
    body = path.read_bytes()
    match path.name.partition("-")[0]:
        case "anthropic":
            return check_anthropic_request(body)
        case "responses":
            return check_responses_request(body, stateless=b'"store": false' in body)
        case "gemini":
            # Vertex knows a key that the Gemini API does not.
            return check_gemini_request(body, extra_keys=("modelArmorConfig",))
        case other:
            raise ValueError(f"{path}: no format is called {other}")


def test_there_are_requests_of_each_format_with_their_sources() -> None:
    formats = {path.name.partition("-")[0] for path in TAKEN}
    assert formats == {"anthropic", "responses", "gemini"}
    sources = (REQUESTS / "SOURCES.md").read_text()
    for path in REQUESTS.rglob("*.json"):
        assert f"`{path.relative_to(REQUESTS)}`" in sources


@pytest.mark.parametrize("path", TAKEN, ids=lambda path: path.stem)
def test_a_request_that_was_taken_passes(path: Path) -> None:
    assert check(path) == []


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("responses-reasoning-orphan", "reasoning.following"),
        ("gemini-vertex", "generation.range"),
    ],
)
def test_a_request_that_was_refused_is_refused_for_the_same_reason(name: str, rule: str) -> None:
    assert [found.rule for found in check(REQUESTS / "refused" / f"{name}.json")] == [rule]
