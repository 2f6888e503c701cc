"""Hypothesis strategies for every type of the protocol, made from the types themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

Values = st.SearchStrategy[Any]

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
INTEGERS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
SCALARS = st.none() | st.booleans() | INTEGERS | FLOATS | TEXT
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
JSON_OBJECTS = st.dictionaries(TEXT, JSON, max_size=3)


def values(kind: Any) -> Values:
    """Return a strategy for the values of a type: a struct, a union of structs, ..."""
    return _of(inspect.type_info(kind))


def _of(kind: inspect.Type) -> Values:
    match kind:
        case inspect.StructType(cls=cls):
            return _struct(cls)
        case inspect.UnionType(types=types):
            return st.one_of([_of(member) for member in types])
        case inspect.LiteralType(values=choices):
            return st.sampled_from(choices)
        case inspect.VarTupleType(item_type=item):
            return st.lists(_of(item), max_size=2).map(tuple)
        case inspect.DictType(value_type=value):
            return st.dictionaries(TEXT, _of(value), max_size=2)
        case inspect.StrType():
            return TEXT
        case inspect.IntType():
            return INTEGERS
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.AnyType():
            return JSON
        case _:
            raise AssertionError(f"no values for {kind}: teach this module the type")


@cache
def _struct(cls: type[Any]) -> Values:
    fields = {
        field.name: _of(inspect.type_info(field.type)) for field in msgspec.structs.fields(cls)
    }
    return st.builds(cls, **fields)
