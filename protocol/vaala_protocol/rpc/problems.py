"""What is wrong with parameters, in words: the field, what it must be, what it was."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from vaala_protocol.errors import BadRequest

_AT = re.compile(r"(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_EXPECTED = re.compile(r"Expected (.+)", re.DOTALL)
_INVALID = re.compile(r"Invalid (?:enum )?value (.+)", re.DOTALL)
_STEP = re.compile(r"\[[^]]*\]|[^.[]+")


def bad_params(method: str, kind: type[object], problem: str) -> BadRequest:
    """Return the refusal for parameters that msgspec could not read as ``kind``."""
    field, text = explain(kind, problem)
    return BadRequest(f"{method}: {field}: {text}" if field else f"{method}: {text}", field=field)


def explain(kind: type[object], problem: str) -> tuple[str, str]:
    """Return the field and the trouble that msgspec's message about ``kind`` tells.

    As in "Expected `str`, got `int` - at `$.content[0].text`". msgspec does not say which values
    a field with a fixed set may have; they are looked up here.
    """
    found = _AT.fullmatch(problem)
    what, path = (found["what"], found["path"] or "") if found else (problem, "")
    if missing := _MISSING.fullmatch(what):
        return f"{path}.{missing[1]}" if path else missing[1], "it is required"
    if expected := _EXPECTED.fullmatch(what):
        return path, f"expected {expected[1]}"
    if invalid := _INVALID.fullmatch(what):
        values = ", ".join(repr(value) for value in _choices(kind, path))
        return path, f"expected one of {values}; got {invalid[1]}"
    return path, what[:1].lower() + what[1:]


def _choices(kind: type[object], path: str) -> list[object]:
    """Return the values that the field at ``path`` can have, when they are a fixed set."""
    # Of use for wrong input alone, and half as long to import as the rest of the codec.
    import msgspec.inspect

    places: list[msgspec.inspect.Type] = [msgspec.inspect.type_info(kind)]
    for step in _STEP.findall(path):
        places = [inner for place in places for inner in _inside(place, step)]
    found: dict[object, None] = {}
    for place in places:
        for plain in _members(place):
            if isinstance(plain, msgspec.inspect.LiteralType):
                found.update(dict.fromkeys(plain.values))
    return list(found)


def _members(place: msgspec.inspect.Type) -> Iterator[msgspec.inspect.Type]:
    if isinstance(place, msgspec.inspect.UnionType):
        for member in place.types:
            yield from _members(member)
    else:
        yield place


def _inside(place: msgspec.inspect.Type, step: str) -> Iterator[msgspec.inspect.Type]:
    """Yield the types that ``step`` ("name", "[0]" or "[...]") can lead to."""
    for plain in _members(place):
        match plain:
            case msgspec.inspect.StructType():
                if step == plain.tag_field and plain.tag is not None:
                    yield msgspec.inspect.LiteralType((plain.tag,))
                yield from (field.type for field in plain.fields if field.encode_name == step)
            case msgspec.inspect.DictType():
                yield plain.value_type
            case msgspec.inspect.VarTupleType() | msgspec.inspect.ListType():
                yield plain.item_type
            case _:
                pass
