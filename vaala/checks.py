"""What clients give is checked where it comes in: it can be stored, and it is bounded."""

from __future__ import annotations

import os
from typing import Any, TypeVar

from vaala import limits
from vaala.models.options import option_fault
from vaala.services.schema import fault_of
from vaala.text import scrub
from vaala_protocol.base import encode
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import Settings
from vaala_protocol.state import Location

T = TypeVar("T")


def storable(value: T, what: str, bytes_max: int, way_out: str = "") -> T:
    """Return ``value``; raises `BadRequest` when JSON cannot hold it or it is too large."""
    try:
        size = len(encode(value))
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequest(f"{what} cannot be stored: {error}") from error
    if size > bytes_max:
        raise BadRequest(f"{what} would be {size} bytes, at most {bytes_max} are taken{way_out}")
    return value


def checked_title(title: str) -> str:
    return storable(scrub(title), "the title", limits.TITLE_BYTES_MAX)


def checked_tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    return storable(tuple(map(scrub, tags)), "the list of tags", limits.TAGS_BYTES_MAX)


def checked_settings(settings: Settings) -> Settings:
    for name, value in settings.options.items():
        if (fault := option_fault(name, value)) is not None:
            raise BadRequest(fault, field="settings.options")
    return storable(settings, "the settings", limits.SETTINGS_BYTES_MAX)


def checked_output_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a JSON Schema that answers can be checked against; raises `BadRequest`."""
    storable(schema, "the output schema", limits.OUTPUT_SCHEMA_BYTES_MAX)
    if (fault := fault_of(schema)) is not None:
        place = ".".join(fault.place) or "the top"
        raise BadRequest(f"the output schema is no usable JSON Schema: at {place}: {fault.text}")
    return schema


def checked_location(directory: str, executor: str) -> Location:
    """Return a place to work in; on this machine it is as it is from now on, whatever the
    process's directory."""
    if "\0" in directory:
        raise BadRequest("the directory has a NUL in it", field="directory")
    if executor == "local":
        directory = os.path.abspath(os.path.expanduser(directory))
    location = Location(executor=executor, directory=directory)
    storable(location, "the directory", limits.LOCATION_BYTES_MAX)
    if executor == "local":
        _check_path(directory)
    return location


def _check_path(path: str) -> None:
    """Refuse a path that no system call takes."""
    data = os.fsencode(path)
    longest = max(map(len, data.split(b"/")))
    if len(data) > limits.PATH_BYTES_MAX or longest > limits.NAME_BYTES_MAX:
        raise BadRequest(
            f"the directory {path[:80]!r}… is no path: one has up to {limits.PATH_BYTES_MAX:,} "
            f"bytes, and {limits.NAME_BYTES_MAX} between two slashes",
            field="directory",
        )
