"""The one line that ``vaala serve --ready-fd N`` writes to descriptor N, in JSON.

`Ready` when the record is in place and connections are accepted; `Failed` when the server gives
up. Whoever started it reads the line; an end of the pipe without one means that it died.
"""

from __future__ import annotations

import os
from typing import TypeAlias

from msgspec.structs import replace

from vaala.discovery import limits
from vaala_protocol.base import Malformed, Value, decode, encode, from_json


class Ready(Value, frozen=True, kw_only=True, tag_field="type", tag="ready"):
    pid: int
    instance: str


class Failed(Value, frozen=True, kw_only=True, tag_field="type", tag="failed"):
    message: str
    """For the person, as the server would have printed it."""
    locked: bool = False
    """Another process owns the data directory; the message names it."""


Report: TypeAlias = Ready | Failed


def write_report(descriptor: int, report: Report) -> None:
    """Write the line and close the descriptor. Who does not read any more is no problem."""
    if isinstance(report, Failed):
        report = replace(report, message=report.message[: limits.FAILURE_CHARACTERS_MAX])
    try:
        os.write(descriptor, encode(report) + b"\n")
    except BrokenPipeError:
        pass
    finally:
        os.close(descriptor)


def parse_report(line: bytes) -> Report:
    """Return what the line says; raises `Malformed`."""
    if len(line) > limits.READY_LINE_BYTES_MAX:
        raise Malformed(f"a line of {len(line)} bytes")
    return from_json(decode(line), Ready | Failed)  # type: ignore[arg-type]  # a union is no class
