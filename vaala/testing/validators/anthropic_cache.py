"""Cache breakpoints, wherever they stand in a request."""

from __future__ import annotations

from collections.abc import Iterator

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.anthropic_messages import blocks_of
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.limits import CLAUDE_MAX_CACHE_BREAKPOINTS

_TTLS = ("5m", "1h")


def check_cache(request: JsonObject, report: Report) -> None:
    """Check their form, their number, and that none lives longer than one before it."""
    marks = [(node["cache_control"], path) for node, path in _marked(request)]
    short_before = False
    for mark, path in marks:
        match as_object(mark):
            case {"type": "ephemeral", **rest} if (
                rest.keys() <= {"ttl"} and rest.get("ttl", "5m") in _TTLS
            ):
                if rest.get("ttl") == "1h" and short_before:
                    message = "a block with ttl '1h' stands before one with '5m'"
                    report.add(rules.CACHE_ORDER, path, message)
                short_before = short_before or rest.get("ttl", "5m") == "5m"
            case _:
                report.add(rules.CACHE, path, f"{show(mark)} is not ephemeral with a ttl")
    if len(marks) > CLAUDE_MAX_CACHE_BREAKPOINTS:
        message = f"a maximum of {CLAUDE_MAX_CACHE_BREAKPOINTS} blocks, found {len(marks)}"
        report.add(rules.CACHE_COUNT, "$", message)


def _marked(request: JsonObject) -> Iterator[tuple[JsonObject, str]]:
    """Whatever has a breakpoint, in the order in which the server puts it into the prompt."""
    for node, path in _nodes(request):
        if node.get("cache_control") is not None:
            yield node, child(path, "cache_control")


def _nodes(request: JsonObject) -> Iterator[tuple[JsonObject, str]]:
    for key in ("tools", "system"):
        for index, value in enumerate(as_array(request.get(key)) or ()):
            if (node := as_object(value)) is not None:
                yield node, child("$", key, index)
    for index, value in enumerate(as_array(request.get("messages")) or ()):
        for block_index, block in enumerate(blocks_of(as_object(value) or {})):
            path = child("$", "messages", index, "content", block_index)
            for inner_index, inner in enumerate(blocks_of(block)):
                yield inner, child(path, "content", inner_index)
            yield block, path
    yield request, "$"
