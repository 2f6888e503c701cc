"""Strict JSON: what a model may write as arguments, and nothing near it."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from vaala.tools import limits
from vaala.tools.text import clean_line

_SURROGATE = re.compile("[\ud800-\udfff]")
_TOO_DEEP = f"they are nested deeper than {limits.ARGUMENTS_DEPTH_MAX} levels"


class NotStrict(ValueError):
    """Text that is no strict JSON object; the message says what is wrong with it."""


def parse_object(text: str) -> dict[str, Any]:
    """Read a JSON object; blank text is an empty one, as providers send it for no arguments.

    Raises `NotStrict` for anything else: other values, trailing text, duplicate keys, NaN and
    infinities, lone surrogates, more bytes or deeper nesting than the limits.
    """
    if len(text) > limits.ARGUMENTS_BYTES_MAX or (
        len(text.encode("utf-8", "replace")) > limits.ARGUMENTS_BYTES_MAX
    ):
        raise NotStrict(f"they are larger than {limits.ARGUMENTS_BYTES_MAX:,} bytes")
    if not text.strip():
        return {}
    try:
        value = _loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        if error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated"):
            raise NotStrict(
                f"they are not complete JSON: the text ends in the middle ({where}); the answer "
                "may have reached its output limit"
            ) from error
        near = clean_line(text[max(0, error.pos - 10) : error.pos + 20], 40)
        raise NotStrict(
            f"they are not valid JSON: {error.msg} at {where}, near {near!r}"
        ) from error
    if not isinstance(value, dict):
        raise NotStrict(f"they must be a JSON object, not {kind_of(value)}")
    _check_tree(value)
    return value


def parse_value(text: str) -> Any:
    """Read any JSON value by the same rules; raises `NotStrict`."""
    try:
        value = _loads(text)
    except json.JSONDecodeError as error:
        raise NotStrict(str(error)) from error
    _check_tree(value)
    return value


def _loads(text: str) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except RecursionError as error:
        raise NotStrict(_TOO_DEEP) from error
    except (json.JSONDecodeError, NotStrict):
        raise
    except ValueError as error:  # a whole number of thousands of digits
        raise NotStrict("they hold a number that is too long") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = clean_line(_repeated([key for key, _ in pairs]), limits.VALUE_TEXT_CHARS_MAX)
        raise NotStrict(f"the key `{twice}` stands in them twice")
    return value


def _repeated(keys: list[str]) -> str:
    seen: set[str] = set()
    for key in keys:
        if key in seen:
            return key
        seen.add(key)
    return ""


def _refuse_constant(name: str) -> Any:
    raise NotStrict(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise NotStrict(f"the number {clean_line(text, 20)} is too large")
    return number


def _check_tree(value: Any) -> None:
    """Check depth and text of a parsed value, without recursion."""
    level = [value]
    for _ in range(limits.ARGUMENTS_DEPTH_MAX):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below += item.keys()
                below += item.values()
            elif isinstance(item, list):
                below += item
            elif isinstance(item, str) and (found := _SURROGATE.search(item)):
                raise NotStrict(
                    f"a string holds half a character (\\u{ord(found[0]):04x}, a lone surrogate)"
                )
        if not below:
            return
        level = below
    raise NotStrict(_TOO_DEEP)


def kind_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case str():
            return "a string"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case _:
            return "an object"
