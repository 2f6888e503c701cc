"""``command/``: commands that run in the background of a conversation."""

from __future__ import annotations

from typing import Literal

from vaala_protocol.base import Value
from vaala_protocol.methods.base import Done, Request
from vaala_protocol.state import CommandInfo


class CommandListResult(Value, frozen=True, kw_only=True):
    commands: tuple[CommandInfo, ...]


class CommandListParams(Value, Request[CommandListResult], frozen=True, kw_only=True):
    """Return the commands that run in the background of a conversation, oldest first."""

    method = "command/list"
    result = CommandListResult

    conversation_id: str


class CommandParams(Value, frozen=True, kw_only=True):
    conversation_id: str
    command_id: str


class CommandOutputResult(Value, frozen=True, kw_only=True):
    text: str
    offset: int
    """The byte of output that the text begins with; later than asked for when older is gone."""
    next_offset: int
    total_bytes: int
    running: bool
    exit_code: int | None = None
    signal: int | None = None


class CommandOutputParams(CommandParams, Request[CommandOutputResult], frozen=True, kw_only=True):
    """Return output of a command that runs or ended lately, from a byte on."""

    method = "command/output"
    result = CommandOutputResult

    offset: int = 0
    limit_bytes: int = 65_536


class CommandWriteParams(CommandParams, Request[Done], frozen=True, kw_only=True):
    """Write to the standard input of a command."""

    method = "command/write"
    result = Done

    text: str


class CommandResizeParams(CommandParams, Request[Done], frozen=True, kw_only=True):
    """Change the size of a command's terminal; ``bad_request`` for one without a terminal."""

    method = "command/resize"
    result = Done

    columns: int
    rows: int


class CommandKillParams(CommandParams, Request[Done], frozen=True, kw_only=True):
    """Signal a command, or end its whole tree (``KILL``: at once, ``TERM``: after a grace)."""

    method = "command/kill"
    result = Done

    signal: Literal["INT", "TERM", "KILL", "HUP"] = "TERM"
