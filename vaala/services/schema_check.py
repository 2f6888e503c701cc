"""Values against a JSON Schema: what is wrong with them, each problem with its place.

Formats are not checked, and a pattern that cannot be searched for in linear time is not, either.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from vaala.services import limits
from vaala.services.schema import (
    BOUNDS,
    CHOICES_SHOWN_MAX,
    TYPES,
    is_number,
    matcher,
    shown,
    target_of,
)
from vaala.tools.text import clean_line


class TooMuch(Exception):
    """There is more to look at than was allowed."""


def argument_problems(value: dict[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the arguments of a tool; empty: nothing found.

    ``schema`` is one without a `schema_fault`.
    """
    return _Checker(schema, "argument", limits.ARGUMENT_VISITS_MAX).problems(value, schema, "", 0)


def answer_problems(value: Any, schema: Mapping[str, Any], visits_max: int) -> list[str]:
    """Return what is wrong with an answer; empty: it matches.

    ``schema`` is one without a fault by `fault_of`. Takes some 30 us for each look at a value;
    raises `TooMuch` when ``visits_max`` of them are not enough.
    """
    checker = _Checker(schema, "answer", visits_max)
    problems = checker.problems(value, schema, "", 0)
    if not problems and checker.too_deep:
        return ["the answer is nested too deep to be checked"]
    return problems


class _Checker:
    def __init__(self, root: Mapping[str, Any], what: str, visits_max: int) -> None:
        self._root = root
        self._what = what
        self._answer = what == "answer"
        self._visits = visits_max
        self._matchers: dict[str, Callable[[str], bool] | None] = {}
        self.too_deep = False
        """Something was not looked at."""

    def problems(self, value: Any, schema: Any, place: str, depth: int) -> list[str]:
        self._visits -= 1
        if self._visits < 0 and self._answer:
            raise TooMuch
        if self._visits < 0 or depth > 2 * limits.SCHEMA_DEPTH_MAX:
            self.too_deep = True
            return []
        if isinstance(schema, bool):
            return [] if schema else [f"{self._named(place)} must not be there"]
        if (wrong := self._wrong_value(value, schema)) is not None:
            return [f"{self._named(place)} {wrong}, not {shown(value)}"]
        found: list[str] = []
        if (target := target_of(schema.get("$ref"), self._root)) is not None:
            found += self.problems(value, target, place, depth + 1)
        found += self._alternatives(value, schema, place, depth)
        if isinstance(value, dict):
            found += self._members(value, schema, place, depth)
        elif isinstance(value, list):
            found += self._items(value, schema, place, depth)
        return found

    def _fits(self, value: Any, schema: Any, place: str, depth: int) -> bool:
        return not self.problems(value, schema, place, depth + 1)

    def _alternatives(
        self, value: Any, schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        for part in schema.get("allOf", ()):
            yield from self.problems(value, part, place, depth + 1)
        for name in ("anyOf", "oneOf"):
            parts = schema.get(name)
            if not parts:
                continue
            # Schemas of tools often have forms that overlap; their makers never noticed.
            alone = name == "oneOf" and self._answer
            fitting = 0
            for part in parts:
                fitting += self._fits(value, part, place, depth)
                if fitting > alone:
                    break
            if not fitting:
                yield f"{self._named(place)} is none of the {len(parts)} forms that it can have"
            elif fitting > 1:
                yield f"{self._named(place)} is more than one of the {len(parts)} forms"
        if "not" in schema and self._fits(value, schema["not"], place, depth):
            yield f"{self._named(place)} is what it must not be"
        if "if" in schema:
            branch = "then" if self._fits(value, schema["if"], place, depth) else "else"
            yield from self.problems(value, schema.get(branch, True), place, depth + 1)

    def _members(
        self, value: dict[str, Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        known = schema.get("properties", {})
        patterns: Mapping[str, Any] = schema.get("patternProperties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{self._named(_below(place, name))} is missing"
        for name, member in value.items():
            below = _below(place, name)
            if name in known:
                yield from self.problems(member, known[name], below, depth + 1)
            matching = [one for one in patterns if self._matches(one, name)]
            for one in matching:
                if self._matchers[one] is not None:
                    yield from self.problems(member, patterns[one], below, depth + 1)
            if name not in known and not matching:
                rest = schema.get("additionalProperties", True)
                if rest is False:
                    yield self._not_known(below)
                else:
                    yield from self.problems(member, rest, below, depth + 1)
            if "propertyNames" in schema:
                yield from self.problems(name, schema["propertyNames"], below, depth + 1)
            yield from self._dependent(value, schema, name, place, depth)

    def _dependent(
        self, value: dict[str, Any], schema: Mapping[str, Any], name: str, place: str, depth: int
    ) -> Iterator[str]:
        needed = schema.get("dependentRequired")
        for other in needed.get(name, ()) if isinstance(needed, Mapping) else ():
            if other not in value:
                yield f"{self._named(_below(place, other))} is missing, which `{name}` needs"
        if name in schema.get("dependentSchemas", {}):
            yield from self.problems(value, schema["dependentSchemas"][name], place, depth + 1)

    def _items(
        self, value: list[Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        items = schema.get("items", True)
        first = items if isinstance(items, list) else schema.get("prefixItems", ())
        rest = True if isinstance(items, list) else items
        for number, item in enumerate(value):
            part = first[number] if number < len(first) else rest
            yield from self.problems(item, part, _below(place, str(number)), depth + 1)
        if schema.get("uniqueItems") is True:
            texts = {json.dumps(item, sort_keys=True) for item in value}
            if len(texts) < len(value):
                yield f"{self._named(place)} has the same item twice"
        if "contains" in schema:
            yield from self._contained(value, schema, place, depth)

    def _contained(
        self, value: list[Any], schema: Mapping[str, Any], place: str, depth: int
    ) -> Iterator[str]:
        least, most = schema.get("minContains", 1), schema.get("maxContains", len(value))
        count = sum(self._fits(item, schema["contains"], place, depth) for item in value)
        if not (is_number(least) and is_number(most)) or least <= count <= most:
            return
        yield f"{self._named(place)} has {count} items of the kind that it must contain"

    def _wrong_value(self, value: Any, schema: Mapping[str, Any]) -> str | None:
        """Return what the value itself should be, whatever is in it."""
        kinds = schema.get("type")
        if kinds is not None:
            names = kinds if isinstance(kinds, list) else [kinds]
            if not any(TYPES[name](value) for name in names):
                return f"must be {' or '.join(names)}"
        if "const" in schema and not _same(value, schema["const"]):
            return f"must be {shown(schema['const'])}"
        if "enum" in schema and not any(_same(value, choice) for choice in schema["enum"]):
            return f"must be one of {', '.join(map(shown, schema['enum'][:CHOICES_SHOWN_MAX]))}"
        for name, (applies, fits, words) in BOUNDS.items():
            if name in schema and applies(value) and not fits(value, schema[name]):
                return f"{words} {schema[name]}"
        if is_number(value) and not _is_multiple(value, schema.get("multipleOf")):
            return f"must be a multiple of {schema['multipleOf']}"
        pattern = schema.get("pattern")
        if isinstance(value, str) and isinstance(pattern, str):
            return None if self._matches(pattern, value) else f"must match {shown(pattern)}"
        return None

    def _matches(self, pattern: str, text: str) -> bool:
        """Look for a pattern; one that cannot be looked for matches everything."""
        if pattern not in self._matchers:
            self._matchers[pattern] = matcher(pattern)
        found = self._matchers[pattern]
        return found is None or found(text)

    def _named(self, place: str) -> str:
        if not place:
            return "the answer" if self._answer else "the arguments"
        return f"`{clean_line(place, limits.VALUE_CHARS_MAX)}`"

    def _not_known(self, place: str) -> str:
        named = self._named(place)
        return f"{named} must not be there" if self._answer else f"there is no argument {named}"


def _is_multiple(value: float, of: Any) -> bool:
    if not is_number(of) or of <= 0:
        return True
    # Imported here since few schemas need it. As decimal fractions, which they were written as: 0.3
    # is a multiple of 0.1.
    from fractions import Fraction

    return Fraction(repr(value)) % Fraction(repr(of)) == 0


def _same(one: Any, other: Any) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
