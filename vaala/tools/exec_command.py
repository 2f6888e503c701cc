"""``exec_command``: a shell command, in the foreground or beside the work."""

from __future__ import annotations

import shlex
from functools import partial
from typing import Annotated

import trio
from msgspec import Meta

from vaala.permissions.base import Access
from vaala.tools import limits
from vaala.tools.base import PreparedCall, RunningCommand, ToolContext, ToolFailure, ToolResult
from vaala.tools.command_text import command_result, until, until_quiet
from vaala.tools.declared import DeclaredTool
from vaala.tools.files import find_place
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean_line, is_clean
from vaala_executors.process import Command
from vaala_executors.workspace import Place, Workspace
from vaala_protocol.calls import CommandDetails

_Limit = Annotated[
    float, Meta(description="End it after this time", ge=0.1, le=limits.COMMAND_TIMEOUT_S_MAX)
]


class ExecArguments(ToolArguments, frozen=True):
    command: Annotated[str, Meta(max_length=limits.COMMAND_CHARS_MAX)]
    cwd: str = "."
    timeout_s: _Limit | None = None
    background: Annotated[
        bool,
        Meta(description="Return after its first output; its input stays open for write_stdin"),
    ] = False


class ExecCommand(DeclaredTool[ExecArguments]):
    """Runs in a new session without a terminal.

    In the foreground stdin is empty and the call waits for the end; after
    `ToolContext.command_foreground_s` the command goes on in the background. In the background
    stdin is open. A foreground command takes with it what it left running with ``&``.
    """

    def __init__(self) -> None:
        super().__init__(
            "exec_command",
            "Run a shell command. What runs long goes on in the background, and you are told when "
            "it ends; what it starts with & ends with it.",
            ExecArguments,
        )

    async def plan(self, arguments: ExecArguments, workspace: Workspace) -> PreparedCall:
        if not arguments.command.strip():
            raise ToolFailure("exec_command was not run: the command is empty")
        if not is_clean(arguments.command):
            # A person allows what they see, and these would hide a part of it.
            raise ToolFailure(
                "exec_command was not run: the command holds control characters or marks that "
                "change the order of text. Write them with printf or $'\\x1b'"
            )
        place = await find_place(workspace, arguments.cwd or ".")
        details = CommandDetails(
            command=arguments.command,
            cwd=arguments.cwd,
            executor=workspace.executor,
            background=arguments.background,
        )
        title = clean_line(arguments.command, limits.TITLE_CHARS_MAX)
        return PreparedCall(
            details=details,
            title=f"Run {title}",
            access=Access("execute", _subject(arguments.command, place), place.root is None),
            run=partial(_run, arguments, place, details),
        )


def _subject(command: str, place: Place) -> str:
    """Return what a rule names: the command, and where it runs unless in the working directory.

    Quoted, so that the name of a directory cannot look like another command.
    """
    return command if place.name == "." else f"cd {shlex.quote(place.name)} && {command}"


async def _run(
    arguments: ExecArguments, place: Place, details: CommandDetails, context: ToolContext
) -> ToolResult:
    command = await context.commands.start(
        Command(shell=arguments.command, cwd=_directory(place), stdin=arguments.background),
        text=arguments.command,
        workspace=context.workspace,
        call_id=context.call_id,
        timeout_s=arguments.timeout_s,
    )
    try:
        if arguments.background:
            await until_quiet(command, limits.COMMAND_FIRST_OUTPUT_S)
        else:
            await until(command.wait, context.command_foreground_s)
    except trio.Cancelled:
        with trio.move_on_after(limits.COMMAND_END_S, shield=True):
            await command.end()
        raise
    return _told(arguments, details, command, context)


def _directory(place: Place) -> str:
    """Return where to run: the place that was allowed, wherever the path may lead by now."""
    return "." if place.name == "." else place.real_path


def _told(
    arguments: ExecArguments,
    details: CommandDetails,
    command: RunningCommand,
    context: ToolContext,
) -> ToolResult:
    """Hand over what still runs. Nothing is awaited between the look and the hand-over."""
    note = ""
    if command.exit is None:
        command.to_background()
        took = "" if arguments.background else f"It has taken {context.command_foreground_s:g} s. "
        note = f"{took}You are told when it ends; write_stdin shows its new output."
    elif command.timed_out:
        note = f"The limit was {arguments.timeout_s:g} s."
    return command_result(command, details, note=note)
