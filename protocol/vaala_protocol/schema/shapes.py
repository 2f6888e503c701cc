"""The types of the wire as data: names, fields, defaults, docstrings. Schemas are made of it.

Docstrings of fields are not kept at run time, so they are read from the source.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, TypeAlias, get_args, get_origin

import msgspec

from vaala_protocol.base import Value, decode, encode
from vaala_protocol.events import UnknownEvent
from vaala_protocol.items import Private
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.rpc import ErrorBody

Annotation: TypeAlias = Any
"""A type as it stands at a field, resolved: a class, a union, ``tuple[str, ...]``."""

MODULES = (
    "content", "calls", "settings", "prices", "items", "state", "usage", "events", "pages",
    "methods.base", "methods.runtime", "methods.conversation", "methods.session",
    "methods.decisions", "methods.command", "methods.client", "methods.catalog",
    "rpc.refusals",
)  # fmt: skip
"""What is used stands before what uses it; types come in this order."""


class Field(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    """As on the wire."""
    type: Annotation
    required: bool
    default: Any = None
    """As JSON; of use when it is not required."""
    doc: str = ""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """An object of the wire."""

    name: str
    doc: str
    tag_field: str | None
    tag: str | None
    base: str | None
    """A shape whose fields it has, too."""
    own: tuple[Field, ...]
    """Its fields without those of the base."""
    fields: tuple[Field, ...]


class Alias(msgspec.Struct, frozen=True, kw_only=True):
    """A name for a union or for a set of values."""

    name: str
    type: Annotation


def shapes() -> list[Shape | Alias]:
    """Return every type that can be on the wire, in the order of `MODULES`."""
    wanted = _reachable()
    found: dict[str, Shape | Alias] = {}
    for module in _modules():
        for name, value in vars(module).items():
            if inspect.isclass(value):
                if value in wanted and value.__module__ == module.__name__:
                    found[name] = _shape(value)
            elif _is_named(value) and aliases()[value] == name:
                found.setdefault(name, Alias(name=name, type=value))
    return list(found.values())


def origin_of(annotation: Annotation) -> Annotation:
    """Return ``tuple`` for ``tuple[str, ...]``; None for what has no parts."""
    return get_origin(annotation)


def is_union(annotation: Annotation) -> bool:
    return origin_of(annotation) in (types.UnionType, typing.Union)


def members(annotation: Annotation) -> list[Annotation]:
    """Return what a type is made of; "that or null" gives the named union that "that" is.

    `UnknownEvent` is no part of the wire: a client makes it of what it does not know.
    """
    parts = [part for part in get_args(annotation) if part is not UnknownEvent]
    rest = [part for part in parts if part is not types.NoneType]
    if len(rest) < len(parts):
        for alias in aliases():
            if is_union(alias) and set(get_args(alias)) == set(rest):
                return [alias, types.NoneType]
    return parts


@cache
def aliases() -> dict[Annotation, str]:
    """Return the names of unions and of sets of values, by what they stand for."""
    found: dict[Annotation, str] = {}
    for module in _modules():
        for name, value in vars(module).items():
            if _is_named(value) and not name.startswith("_"):
                found.setdefault(value, name)  # the first module is the one that defines it
    return found


def method_doc(kind: type[Any]) -> str:
    """Return what a method or a notification does."""
    return _doc(kind)


def fields_of(cls: type[Any]) -> tuple[Field, ...]:
    """Return the fields of a struct as they are on the wire: nothing private is among them."""
    docs = _field_docs(cls)
    return tuple(
        Field(
            name=field.encode_name,
            type=field.type,
            required=field.required,
            default=None if field.required else _default(field),
            doc=docs.get(field.name, ""),
        )
        for field in msgspec.structs.fields(cls)
        if field.type != Private | None
    )


def _default(field: msgspec.structs.FieldInfo) -> Any:
    """Return a default as JSON; a field that is not required has a value or a factory."""
    if field.default is not msgspec.NODEFAULT:
        return decode(encode(field.default))
    factory: Callable[[], Any] = field.default_factory
    return decode(encode(factory()))


def _shape(cls: type[Any]) -> Shape:
    fields = fields_of(cls)
    base = next((base for base in cls.__bases__ if _has_fields(base)), None)
    inherited = {field.name for field in fields_of(base)} if base is not None else set[str]()
    config = cls.__struct_config__
    # msgspec gives a class that names only its tag field its own name as tag: a base, never sent.
    tag = None if config.tag == cls.__name__ else config.tag
    return Shape(
        name=cls.__name__,
        doc=_doc(cls),
        tag_field=config.tag_field if tag is not None else None,
        tag=tag,
        base=base.__name__ if base is not None else None,
        own=tuple(field for field in fields if field.name not in inherited),
        fields=fields,
    )


def _has_fields(cls: type[Any]) -> bool:
    return issubclass(cls, Value) and bool(cls.__struct_fields__)


def _doc(cls: type[Any]) -> str:
    """Return the docstring of a class itself, not that of its base."""
    return _clean(cls.__dict__.get("__doc__") or "")


def _clean(doc: str) -> str:
    """Return a docstring in the words of JSON."""
    return re.sub(r"\bNone\b", "null", inspect.cleandoc(doc).strip()).replace("``", "`")


def _modules() -> list[types.ModuleType]:
    return [importlib.import_module(f"vaala_protocol.{name}") for name in MODULES]


def _is_named(value: object) -> bool:
    """Tell whether a global of a module is a union of structs or a set of values."""
    if origin_of(value) is Literal:
        return True
    return is_union(value) and all(
        inspect.isclass(member) and issubclass(member, Value) for member in get_args(value)
    )


def _reachable() -> set[type[Any]]:
    """Return the structs that are on the wire, and the bases that their fields come from."""
    found: set[type[Any]] = set()
    asked = (*REQUESTS, *CLIENT_REQUESTS)
    left: list[Annotation] = [*asked, *(kind.result for kind in asked), *NOTIFICATIONS, ErrorBody]
    while left:
        annotation = left.pop()
        if not inspect.isclass(annotation) or not issubclass(annotation, Value):
            left += get_args(annotation)
        elif annotation not in found and annotation is not UnknownEvent:
            found.add(annotation)
            left += [field.type for field in fields_of(annotation)]
            left += [base for base in annotation.__bases__ if _has_fields(base)]
    return found


def _field_docs(cls: type[Any]) -> dict[str, str]:
    """Return the docstrings that stand below the fields of a class and of its bases."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if _has_fields(base):
            docs |= dict(_docs_in(base))
    return docs


def _docs_in(cls: type[Any]) -> Iterator[tuple[str, str]]:
    for node in _source(cls.__module__).body:
        if isinstance(node, ast.ClassDef) and node.name == cls.__name__:
            for field, below in zip(node.body, node.body[1:], strict=False):
                match field, below:
                    case (
                        ast.AnnAssign(target=ast.Name(id=name)),
                        ast.Expr(value=ast.Constant(value=str(text))),
                    ):
                        yield name, _clean(text)
                    case _:
                        pass


@cache
def _source(module: str) -> ast.Module:
    return ast.parse(inspect.getsource(importlib.import_module(module)))
