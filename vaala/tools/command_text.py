"""What a call says of a command: its new output, and how it stands."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable

import trio

from vaala.tools import limits
from vaala.tools.base import RunningCommand, ToolResult
from vaala.tools.results import noted
from vaala.tools.text import size_text
from vaala_executors.process import Exit
from vaala_protocol.calls import CommandDetails


async def until(wait: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Wait for something, at most so long."""
    with trio.move_on_after(seconds):
        await wait()


async def until_quiet(command: RunningCommand, seconds: float) -> None:
    """Wait for new output and then for a moment without any, or for the end; at most so long."""
    with trio.move_on_after(seconds):
        await command.wait_output()
        while command.exit is None:
            before = command.output_bytes
            await until(command.wait, limits.COMMAND_SETTLE_S)
            if command.output_bytes == before:
                return


def command_result(
    command: RunningCommand, details: CommandDetails | None = None, *, note: str = ""
) -> ToolResult:
    """Return the output that was not told yet, after a note on how the command stands."""
    text = command.read_new()
    notes = [note, _state(command)]
    if not text:
        notes.append("No output." if command.output_bytes == 0 else "No new output.")
    if command.omitted_bytes:
        notes += _saved(command)
    return noted(text, *notes, details=_told(command, details))


def _saved(command: RunningCommand) -> list[str]:
    """Return where what was left out can be read, and what of it cannot."""
    if command.output_blob is None:
        return [command.note] if command.note else []
    whole = f"The whole output, {size_text(command.output_bytes, 'byte')}, is saved:"
    return [command.note or whole, f"read_file blob:{command.output_blob}"]


def _state(command: RunningCommand) -> str:
    ended = command.exit
    if ended is None:
        return f"It is running as command {command.id}."
    if command.timed_out:
        return "It timed out and was ended."
    return describe_exit(ended)


def describe_exit(ended: Exit) -> str:
    """Return how a command ended; empty for success."""
    if ended.signal is not None:
        return f"Ended by {_signal_name(ended.signal)}."
    if ended.code is None:
        return "How it ended is not known."
    return f"Exit code {ended.code}." if ended.code else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _told(command: RunningCommand, details: CommandDetails | None) -> CommandDetails | None:
    if details is None:
        return None
    ended = command.exit
    return CommandDetails(
        command=details.command,
        cwd=details.cwd,
        executor=details.executor,
        command_id=command.id,
        background=ended is None,
        exit_code=None if ended is None else ended.code,
        signal=None if ended is None else ended.signal,
        timed_out=command.timed_out,
        output_bytes=command.output_bytes,
        omitted_bytes=command.omitted_bytes,
        output_blob=command.output_blob,
    )
