"""Running commands in tests, and looking at what became of processes."""

from __future__ import annotations

import os
from pathlib import Path

import trio

from vaala_executors import Command, Exit, Process, Workspace


async def collect(process: Process) -> bytes:
    return b"".join([chunk async for chunk in process.output()])


async def run(workspace: Workspace, shell: str, **options: object) -> tuple[Exit, str]:
    """Run a shell command to its end; fail if it takes 20 s."""
    command = Command(shell=shell, **options)  # type: ignore[arg-type] # a test's shorthand
    with trio.fail_after(20):
        async with workspace.start(command) as process:
            output = await collect(process)
            return await process.wait(), output.decode()


async def first_line(process: Process) -> str:
    """Return the first line of output; nothing may follow it until the caller goes on."""
    output = b""
    iterator = process.output()
    while not output.endswith(b"\n"):
        output += await anext(iterator)
    return output.decode().strip()


async def gone(pid: int) -> None:
    """Wait until a process has ended; fail if it takes 10 s."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with trio.fail_after(10):
            await trio.lowlevel.wait_readable(handle)
    finally:
        os.close(handle)


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):  # gone before the open, or before the read
        return False
    return fields[0] not in "ZX" or int(fields[17]) > 1  # a dead first thread is not the end
