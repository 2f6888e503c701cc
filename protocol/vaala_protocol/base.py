"""The base of every value that is stored or sent, and the one JSON codec for them.

Values are frozen dataclasses made by msgspec: immutable, compared by value, checked when decoded,
camelCase in JSON, fields at their default left out. A field that a newer version added is ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


class Value(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A frozen record; subclasses in a union add ``tag_field`` and ``tag``."""


class Malformed(ValueError):
    """JSON that does not have the shape of the type it was decoded as; the text says where."""


def to_json(value: object) -> Any:
    """Return ``value`` as JSON-compatible builtins (dict, list, str, int, float, bool, None)."""
    return msgspec.to_builtins(value)


def from_json(data: object, kind: type[T]) -> T:
    """Build a ``kind`` from builtins; raises `Malformed`."""
    try:
        return msgspec.convert(data, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise Malformed(str(error)) from error


def encode(value: object) -> bytes:
    """Return ``value`` as one line of JSON in UTF-8; text must hold no lone surrogates."""
    return msgspec.json.encode(value)


def decode(data: bytes | bytearray | memoryview) -> Any:
    """Parse JSON bytes into builtins; raises `Malformed`, also for nesting that is too deep."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Malformed(str(error)) from error


def changed(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of ``new`` that differ from ``old``, each whole; a field gone is None."""
    fields = {key: value for key, value in new.items() if key not in old or old[key] != value}
    fields.update({key: None for key in old if key not in new})
    return fields
