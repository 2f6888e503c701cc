"""Checks a document against its schema and tells every problem in plain words."""

from __future__ import annotations

import difflib
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, RootModel, ValidationError
from pydantic_core import ErrorDetails

from vaala.config.concealed import conceal, is_secret
from vaala.config.document import Document
from vaala.config.errors import ConfigError, Problem
from vaala.config.limits import FOUND_CHARS_MAX

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "string_too_short": "text that is not empty",
}
_URL = "a URL that begins with http:// or https://"
_PATTERNS = {
    "base_url": _URL,
    "endpoint": _URL,
    "allowed_origins": _URL,
    "proxy": "none, or a URL that begins with http:// or https://",
    "api_key_keyring": "SERVICE/USER",
    "forward": "the name of a variable: letters, digits and underscore",
    "[key]": "a name of letters, digits, dot, dash and underscore, at most 64 characters",
}
_KINDS = {str: "text", bool: "value", int: "number", float: "number"}


def check(document: Document, schema: type[M]) -> M:
    """Return the document as ``schema``; raises `ConfigError` that lists all problems."""
    try:
        return schema.model_validate(document.values)
    except ValidationError as error:
        found = [_problem(document, schema, detail) for detail in error.errors(include_url=False)]
        raise ConfigError(sorted(found, key=lambda problem: problem.line or 0)) from None


def problem(document: Document, way: Sequence[str | int], text: str) -> Problem:
    return Problem(document.file, document.line(way), ".".join(map(str, way)), text)


def _problem(document: Document, schema: type[BaseModel], detail: ErrorDetails) -> Problem:
    way = detail["loc"]
    if detail["type"] == "missing":
        # The line is that of the section: the key itself stands nowhere.
        return problem(document, way, "is missing")
    if detail["type"] == "extra_forbidden":
        return problem(document, way, _unknown(schema, way))
    if way and way[-1] == "[key]":
        found = f"{way[-2]!r} is no name; expected {_PATTERNS['[key]']}"
        return problem(document, way[:-1], found)
    name = document.file.name
    shown = not is_secret(name, way)
    # A URL may hold a password.
    value = conceal(name, way, detail["input"]) if shown else detail["input"]
    found = _found(detail, value, shown=shown)
    return problem(document, way, f"expected {_expected(detail, way)}, found {found}")


def _expected(detail: ErrorDetails, way: Sequence[str | int]) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "literal_error":
        return f"one of {context['expected']}"
    if kind == "string_pattern_mismatch":
        names = [step for step in way if isinstance(step, str)]
        return _PATTERNS.get(names[-1], f"text like {context['pattern']}")
    if kind in ("greater_than", "greater_than_equal", "less_than_equal"):
        return f"a number {detail['msg'].removeprefix('Input should be ')}"
    if kind == "value_error":
        return "a command, with all quotes closed"
    return _EXPECTED.get(kind, detail["msg"])


def _found(detail: ErrorDetails, value: Any, *, shown: bool) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    kind = next((name for known, name in _KINDS.items() if isinstance(value, known)), "value")
    if not shown:
        return f"a {kind}"
    quoted = repr(value)
    if len(quoted) > FOUND_CHARS_MAX:
        quoted = quoted[:FOUND_CHARS_MAX] + "…"
    guess = did_you_mean(str(value), _words(detail.get("ctx", {}).get("expected", "")))
    return f"the {kind} {quoted}{guess}"


def _unknown(schema: type[BaseModel], way: Sequence[str | int]) -> str:
    known = _keys(schema, way[:-1])
    guess = did_you_mean(str(way[-1]), known)
    return f"is an unknown key{guess or ': expected one of ' + ', '.join(known)}"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _words(expected: str) -> list[str]:
    """Take the words out of pydantic's list: ``'read-only', 'ask' or 'full'``."""
    return expected.split("'")[1::2]


def _keys(schema: Any, way: Sequence[str | int]) -> list[str]:
    """Return the keys of the section that ``way`` leads to."""
    for step in way:
        schema = _inner(schema, str(step))
    return list(_model(schema).model_fields)


def _inner(schema: Any, key: str) -> Any:
    model = _model(schema)
    if issubclass(model, RootModel):
        return typing.get_args(model.model_fields["root"].annotation)[1]
    return model.model_fields[key].annotation


def _model(annotation: Any) -> type[BaseModel]:
    """Return the model in an annotation such as ``Section`` or ``Section | None``."""
    if isinstance(annotation, types.UnionType):
        (annotation,) = (part for part in annotation.__args__ if part is not types.NoneType)
    return typing.cast("type[BaseModel]", annotation)
