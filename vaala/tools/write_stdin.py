"""``write_stdin``: input for a command that still runs, and its new output."""

from __future__ import annotations

import json
from functools import partial
from typing import Annotated

from msgspec import Meta

from vaala.permissions.base import Access
from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolResult
from vaala.tools.command_text import command_result, until_quiet
from vaala.tools.declared import DeclaredTool
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean_line
from vaala_executors.workspace import Workspace
from vaala_protocol.calls import OtherDetails

_INTERRUPT = "\x03"


class StdinArguments(ToolArguments, frozen=True):
    command_id: str
    text: Annotated[
        str, Meta(description="\\n ends a line, \\u0003 interrupts, \\u0004 ends the input")
    ] = ""
    wait_s: Annotated[
        float, Meta(description="How long to wait for output", ge=0, le=limits.COMMAND_WAIT_S_MAX)
    ] = limits.COMMAND_WAIT_S_DEFAULT


class WriteStdin(DeclaredTool[StdinArguments]):
    """Without text it only polls. There is no terminal: ^C and ^D are acted on, not sent."""

    def __init__(self) -> None:
        super().__init__(
            "write_stdin",
            "Get the new output of a command that still runs; text, if given, is written to its "
            "input first.",
            StdinArguments,
        )

    async def plan(self, arguments: StdinArguments, workspace: Workspace) -> PreparedCall:
        name = clean_line(arguments.command_id, limits.VALUE_TEXT_CHARS_MAX)
        shown = clean_line(json.dumps(arguments.text), limits.VALUE_TEXT_CHARS_MAX)
        # To look at a command and to interrupt it is free: a person has allowed it to run. What
        # is written to a shell is a command of its own.
        free = arguments.text in ("", _INTERRUPT)
        access = Access("execute", f"{arguments.command_id}: {arguments.text}")
        title = f"Look at command {name}" if not arguments.text else f"Send {shown} to {name}"
        return PreparedCall(
            details=OtherDetails(title=title),
            title=title,
            access=Access("none") if free else access,
            run=partial(_write, arguments),
        )


async def _write(arguments: StdinArguments, context: ToolContext) -> ToolResult:
    command = context.commands.get(arguments.command_id)
    if arguments.text:
        await command.write(arguments.text.encode())
    await until_quiet(command, arguments.wait_s)
    return command_result(command)
