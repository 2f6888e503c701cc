"""Runs the command that prints a key."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

import trio

from vaala.models.keys.source import KeyCommand, NoKey
from vaala.models.limits import KEY_OUTPUT_BYTES_MAX, KEY_OUTPUT_WAIT_S
from vaala.models.secret import Secret, scrub


async def run_key_command(command: KeyCommand, environ: Mapping[str, str]) -> str:
    """Return the first line that the command prints.

    It has no terminal, no input and a session of its own. Raises `NoKey` with what it says on
    stderr when it ends with another code than 0. Cancel: its process group is killed, and gone on
    return.
    """
    inherited = {name: one for name, one in environ.items() if name not in command.withheld}
    printed, said = bytearray(), bytearray()
    async with _started(command, inherited) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_collect, process.stdout, printed)
            nursery.start_soon(_collect, process.stderr, said)
            code = await process.wait()
            # An agent that it has left running may hold the pipes open for hours.
            nursery.cancel_scope.deadline = trio.current_time() + KEY_OUTPUT_WAIT_S
    text = printed.decode("utf-8", "replace")
    if code != 0:
        lines = [Secret(line) for line in text.split()]
        reason = scrub(said.decode("utf-8", "replace").strip(), lines)
        raise NoKey(f"{command} ended with {code}" + (f": {reason}" if reason else ""))
    return text.partition("\n")[0].strip()


@asynccontextmanager
async def _started(command: KeyCommand, environ: Mapping[str, str]) -> AsyncGenerator[trio.Process]:
    try:
        process = await trio.lowlevel.open_process(
            command.argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NoKey(f"{command} cannot be started: {reason}") from error
    try:
        yield process
    finally:
        if process.returncode is None:
            # Not reaped yet: the number is still its own.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    await stream.aclose()


async def _collect(stream: trio.abc.ReceiveStream, kept: bytearray) -> None:
    """Keep the first bytes of a stream; the rest is read and dropped, so that it can end."""
    async for piece in stream:
        kept += piece[: max(KEY_OUTPUT_BYTES_MAX - len(kept), 0)]
