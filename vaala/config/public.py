"""What the files say, without secrets; and the effective values with where each comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from pydantic import BaseModel

from vaala.config.concealed import conceal
from vaala.config.config import DEFAULT_AGENT
from vaala.config.document import Document, parse_document, read_file
from vaala.config.errors import ConfigError
from vaala.config.read import Reader
from vaala.config.schema import SCHEMAS
from vaala.config.yaml_text import Way
from vaala_protocol.errors import NotFound


class Shown(Struct, frozen=True):
    """One effective value; ``line`` None: the default."""

    file: str
    way: Way
    value: Any
    line: int | None


def public_values(file: Path, way: Way) -> Any:
    """Return what a file says, or the value at ``way`` in it, with a mark for each secret.

    Raises `NotFound` when nothing stands there, `ConfigError` when the file cannot be read.
    """
    value = conceal(file.name, (), parse_document(file, read_file(file)).values)
    for depth, step in enumerate(way):
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            place = ".".join(map(str, way[: depth + 1]))
            raise NotFound(f"{file.name}: there is no {place}") from None
    return value


def effective_values(directory: Path, name: str, prefix: Way = ()) -> Iterator[Shown]:
    """Yield the values of a file that are in force, below ``prefix``, in the order of the schema.

    Raises `ConfigError` for a file with problems, `NotFound` when there is nothing at ``prefix``.
    """
    reader = Reader(directory, {})
    checked = reader.read(name, SCHEMAS[name])
    if checked is None:
        raise ConfigError(reader.problems)
    values: Any = checked.values.model_dump()
    if name == "agents.yaml":
        values.setdefault(DEFAULT_AGENT, _shipped_agent())
    values = conceal(name, (), values)
    found = False
    for way, value in _leaves((), values):
        if way[: len(prefix)] == prefix:
            found = True
            yield Shown(name, way, value, _line(checked.document, way))
    if prefix and not found:
        raise NotFound(f"{name}: there is no {'.'.join(map(str, prefix))}")


def _shipped_agent() -> Any:
    schema = cast("Any", SCHEMAS["agents.yaml"]).model_validate({DEFAULT_AGENT: {}})
    return cast("BaseModel", schema).model_dump()[DEFAULT_AGENT]


def _leaves(way: Way, value: Any) -> Iterator[tuple[Way, Any]]:
    if isinstance(value, Mapping) and value:
        for key, one in cast("Mapping[str, Any]", value).items():
            yield from _leaves((*way, key), one)
    elif way:
        yield way, value


def _line(document: Document, way: Way) -> int | None:
    """Return the line of a value that stands in the file; None: it is the default."""
    values = document.values
    for step in way:
        if not isinstance(values, Mapping) or step not in values:
            return None
        values = values[step]
    return document.line(way)
