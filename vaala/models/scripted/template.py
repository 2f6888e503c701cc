"""Texts with ``{{ ... }}``: a source and filters, nothing that could be run."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from vaala_protocol.errors import BadRequest

_HOLE = re.compile(r"\{\{(.*?)\}\}", re.DOTALL)
_TOKEN = re.compile(r'\s*(?:"((?:[^"\\]|\\.)*)"|([A-Za-z0-9_.-]+)|(\|))')

Filter: TypeAlias = Callable[[str], str]


class Scope(Protocol):
    """What the sources of an expression give."""

    def result(self, name: str) -> str: ...
    def prompt(self) -> str: ...
    def round(self) -> int: ...


class Expression(Struct, frozen=True):
    source: str
    filters: tuple[Filter, ...] = ()

    def text(self, scope: Scope) -> str:
        match self.source:
            case "prompt":
                value = scope.prompt()
            case "round":
                value = str(scope.round())
            case source:
                value = scope.result(source.removeprefix("results."))
        for one in self.filters:
            value = one(value)
        return value

    @property
    def result_name(self) -> str | None:
        """The result that it reads, if it reads one."""
        _, dot, name = self.source.partition(".")
        return name if dot else None


class Template(Struct, frozen=True):
    parts: tuple[str | Expression, ...] = ()

    def text(self, scope: Scope) -> str:
        return "".join(p if isinstance(p, str) else p.text(scope) for p in self.parts)

    @property
    def result_names(self) -> list[str]:
        found = [p.result_name for p in self.parts if isinstance(p, Expression)]
        return [name for name in found if name is not None]


def parse_template(text: str, where: str) -> Template:
    """Parse a text; raises `BadRequest` with ``where`` for an expression that is none."""
    parts: list[str | Expression] = []
    # With one group, split gives text and expression by turns.
    for place, part in enumerate(_HOLE.split(text)):
        if place % 2:
            parts.append(parse_expression(part, where))
        elif part:
            parts.append(part)
    return Template(tuple(parts))


def parse_expression(text: str, where: str) -> Expression:
    """Parse ``source | filter | filter argument``; raises `BadRequest`."""
    clauses = _clauses(text, where)
    source = clauses[0]
    known = source[:1] in (["prompt"], ["round"]) or source[0].startswith("results.")
    if len(source) != 1 or not known:
        raise BadRequest(f"{where}: {text.strip()!r} begins with results.NAME, prompt or round")
    return Expression(source[0], tuple(_filter(clause, where) for clause in clauses[1:]))


def fill(value: Any, scope: Scope) -> Any:
    """Return a structure with its `Template`s replaced by their texts."""
    if isinstance(value, Template):
        return value.text(scope)
    if isinstance(value, dict):
        return {key: fill(item, scope) for key, item in value.items()}
    if isinstance(value, list):
        return [fill(item, scope) for item in value]
    return value


def _clauses(text: str, where: str) -> list[list[str]]:
    clauses: list[list[str]] = [[]]
    at = 0
    text = text.strip()
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None:
            raise BadRequest(f"{where}: cannot read {text[at:]!r} in {text!r}")
        at = token.end()
        quoted, word, bar = token.groups()
        if bar:
            clauses.append([])
        else:
            clauses[-1].append(word if quoted is None else quoted.replace('\\"', '"'))
    if not all(clauses):
        raise BadRequest(f"{where}: an expression or a filter is empty in {text!r}")
    return clauses


def _filter(clause: list[str], where: str) -> Filter:
    match clause:
        case ["first_line"]:
            return lambda text: _line(text.strip("\n"), 1)
        case ["last_line"]:
            return lambda text: text.rstrip().rpartition("\n")[2]
        case ["line", number] if number.isdigit():
            return lambda text: _line(text, int(number))
        case ["lines"]:
            return lambda text: str(len(text.splitlines()))
        case ["chars"]:
            return lambda text: str(len(text))
        case ["trim"]:
            return str.strip
        case ["match", pattern]:
            return _matcher(pattern, where)
        case _:
            raise BadRequest(
                f"{where}: {' '.join(clause)!r} is no filter; there are first_line, last_line,"
                ' line N, lines, chars, trim and match "REGEX"'
            )


def _line(text: str, number: int) -> str:
    lines = text.splitlines()
    return lines[number - 1] if 0 < number <= len(lines) else ""


def _matcher(pattern: str, where: str) -> Filter:
    try:
        regex = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise BadRequest(f"{where}: {pattern!r} is no regular expression: {error}") from error

    def match(text: str) -> str:
        found = regex.search(text)
        if found is None:
            return ""
        return (found[1] or "") if regex.groups else found[0]

    return match
