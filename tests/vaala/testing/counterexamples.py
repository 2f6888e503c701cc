"""Changes of a good request, each of which one rule alone refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, TypeAlias

Request: TypeAlias = dict[str, Any]
Pick: TypeAlias = Callable[[list[Any]], Any]
Where: TypeAlias = Callable[[Request, Pick], Any]
SIZE_LIMIT_BYTES = 12_000


CLOSED = {"type": "object", "properties": {"a": {}}, "required": ["a"]}
LOOSE: list[dict[str, Any]] = [
    {"schema": {"type": "array", "items": {}}},
    {"schema": {"type": "object", "properties": {"a": {"type": "text"}}}},
    {"schema": CLOSED, "strict": True},
    {"schema": CLOSED | {"required": [], "additionalProperties": False}, "strict": True},
]
"""Schemas of answers that are refused."""


@dataclass(frozen=True)
class Counterexample:
    """A change of a good request that one rule alone refuses."""

    rule: str
    change: Callable[[Request, Pick], Request | bytes | None]
    """Changes the request in place (None), or returns the body to send instead."""
    options: dict[str, Any] = field(default_factory=dict)


class Counterexamples:
    """Those of one format, in the order in which they are written down."""

    def __init__(self) -> None:
        self.found: list[Counterexample] = []

    def refuses(self, rule: str, **options: Any) -> Callable[[Any], Any]:
        def register(change: Any) -> Any:
            self.found.append(Counterexample(rule, change, options))
            return change

        return register

    def sets(self, rule: str, *values: Any, where: Where, key: str) -> None:
        """One for each value put under ``key`` of the object that ``where`` finds."""
        for value in values:

            def change(request: Request, pick: Pick, value: Any = value) -> None:
                where(request, pick)[key] = deepcopy(value)

            self.found.append(Counterexample(rule, change))

    def drops(self, rule: str, *keys: str, where: Where) -> None:
        """One for each key taken out of the object that ``where`` finds."""
        for key in keys:

            def change(request: Request, pick: Pick, key: str = key) -> None:
                del where(request, pick)[key]

            self.found.append(Counterexample(rule, change))

    def add_bodies(self, where: Where, key: str) -> None:
        """Those of the rules that all formats share; a text stands at ``key`` of ``where``."""

        def says(value: Any) -> Callable[[Request, Pick], None]:
            def change(request: Request, pick: Pick) -> None:
                where(request, pick)[key] = deepcopy(value)

            return change

        def sends(value: str, old: str, new: bytes) -> Callable[[Request, Pick], bytes]:
            def change(request: Request, pick: Pick) -> bytes:
                says(value)(request, pick)
                return _encoded(request).replace(old.encode(), new)

            return change

        def raw(make: Callable[[Request], bytes]) -> Callable[[Request, Pick], bytes]:
            return lambda request, pick: make(request)

        for rule, change, options in (
            ("body.utf8", sends("h\u00e9llo", "h\u00e9llo", b"h\xe9llo"), {}),
            ("body.json", raw(lambda request: _encoded(request)[:-1]), {}),
            ("body.json", raw(lambda request: b""), {}),
            ("body.json", raw(lambda request: b"\xef\xbb\xbf" + _encoded(request)), {}),
            ("body.json", raw(_with_a_name_twice), {}),
            ("body.json", sends("@@", '"@@"', b"NaN"), {}),
            ("body.json", says(float("nan")), {}),
            ("body.json", says({1}), {}),
            ("body.shape", raw(lambda request: b"[]"), {}),
            ("body.shape", raw(lambda request: b"null"), {}),
            ("body.depth", says(_deep(130)), {}),
            ("body.depth", raw(lambda request: b"[" * 100_000 + b"]" * 100_000), {}),
            ("body.size", says("\u00e9" * SIZE_LIMIT_BYTES), {"max_body_bytes": SIZE_LIMIT_BYTES}),
            ("text.surrogate", says("cut \ud83d"), {}),
            ("text.surrogate", sends("@@", "@@", b"cut \\ud83d"), {}),
            ("text.nul", says("a\0b"), {}),
        ):
            self.found.append(Counterexample(rule, change, options))


def _encoded(request: Request) -> bytes:
    return json.dumps(request, ensure_ascii=False).encode()


def _with_a_name_twice(request: Request) -> bytes:
    return json.dumps({next(iter(request)): 0}).encode()[:-1] + b", " + _encoded(request)[1:]


def _deep(levels: int) -> Request:
    value: Request = {}
    for _ in range(levels):
        value = {"not": value}
    return value


def body_after(counterexample: Counterexample, request: Request, pick: Pick) -> Request | bytes:
    changed = counterexample.change(request, pick)
    return request if changed is None else changed


def top(request: Request, pick: Pick) -> Request:
    return request
