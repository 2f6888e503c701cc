"""From a `Command` to a running process, and what to say when there is none."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from itertools import count
from termios import tcsetwinsize

import trio

from vaala_executors.errors import StartFailed
from vaala_executors.limits import PTY_COLUMNS, PTY_ROWS, START_REQUEST_BYTES_MAX
from vaala_executors.local.environment import base_environment, command_environment
from vaala_executors.local.marker import NAME, runtime_marker
from vaala_executors.local.process import LocalProcess, Streams
from vaala_executors.local.spawner import Spawner, end, receive
from vaala_executors.local.supervisor import wire
from vaala_executors.local.supervisor.wire import Request
from vaala_executors.process import Command


class Starter:
    """Starts commands for all workspaces of one executor."""

    def __init__(
        self,
        environ: Mapping[str, str],
        strip: Callable[[], Iterable[str]],
        shell: Sequence[str],
        limiter: trio.CapacityLimiter,
    ) -> None:
        self._environ = environ
        self._strip = strip
        self._shell = tuple(shell)
        self._limiter = limiter
        self._runtime = runtime_marker()
        self._numbers = count(1)
        outer = {NAME: environ[NAME]} if NAME in environ else {}
        self._spawner = Spawner(outer)

    async def aclose(self) -> None:
        """End every command that still runs."""
        await self._spawner.aclose()

    @asynccontextmanager
    async def start(self, command: Command, directory: str) -> AsyncGenerator[LocalProcess]:
        """Run a command in ``directory`` (absolute); see `Workspace.start`.

        Waits until it runs or is refused, or until a cancel: a directory or program on a device
        that does not answer has no deadline of its own.
        """
        argv = self._argv(command)
        base = base_environment(self._environ, self._strip())
        environ = command_environment(base, command.env, directory=directory, pty=command.pty)
        marker = f"{self._runtime}.{next(self._numbers)}"
        request = _request(argv, directory, environ | {NAME: marker}, command)
        process = await self._run(request, command, marker)
        try:
            yield process
        finally:
            await process.aclose()

    def _argv(self, command: Command) -> tuple[str, ...]:
        if bool(command.argv) == (command.shell is not None):
            raise ValueError("a command has either argv or shell")
        return command.argv if command.shell is None else (*self._shell, command.shell)

    async def _run(self, request: Request, command: Command, marker: str) -> LocalProcess:
        with ExitStack() as on_failure:
            with ExitStack() as theirs:
                streams, passed = _open_streams(command, on_failure, theirs)
                line = await self._spawner.submit(request, passed)
            # Theirs are closed, so that our side reads end of file when the command's side does.
            try:
                pid = await _started(line, request)
                process = LocalProcess(pid, line, streams, marker=marker, limiter=self._limiter)
            except BaseException:
                await end(line)
                raise
            on_failure.pop_all()
        return process


async def _started(line: socket.socket, request: Request) -> int:
    """Return the pid; raises `StartFailed`."""
    record = await receive(line, wire.RECORD.size)
    if len(record) < wire.RECORD.size:
        raise StartFailed("the command supervisor was killed, or has no descriptor left: try again")
    kind, first, second = wire.RECORD.unpack(record)
    if kind == wire.FAILED:
        raise StartFailed(_reason(first, second, request))
    return int(first)


def _request(
    argv: Sequence[str], directory: str, environ: Mapping[str, str], command: Command
) -> Request:
    flags = wire.FLAG_PTY * command.pty | wire.FLAG_STDIN * command.stdin
    try:
        arguments = [os.fsencode(argument) for argument in argv]
        entries = [os.fsencode(f"{name}={value}") for name, value in environ.items()]
        cwd = os.fsencode(directory)
    except UnicodeEncodeError as error:
        raise StartFailed(
            f"the command has a character that cannot be passed on: {error}"
        ) from None
    if any(b"\0" in field for field in (cwd, *arguments, *entries)):
        raise StartFailed("the command, its directory or its environment contains a NUL character")
    if any(not name or "=" in name for name in environ):
        raise StartFailed("the name of an environment variable is empty or contains '='")
    if sum(map(len, arguments)) + sum(map(len, entries)) > START_REQUEST_BYTES_MAX:
        raise StartFailed(_reason(wire.STAGE_PROGRAM, errno.E2BIG, Request(arguments, cwd, [], 0)))
    return Request(arguments, cwd, entries, flags)


def _open_streams(
    command: Command, on_failure: ExitStack, theirs: ExitStack
) -> tuple[Streams, list[int]]:
    """Return our ends, and the command's: output first, then what it reads as stdin, if piped.

    Pipes and not socket pairs: bash with a socket as stdin believes that rshd started it and
    reads ~/.bashrc.
    """
    try:
        if command.pty:
            ours, far = os.openpty()
            on_failure.callback(os.close, ours)
            theirs.callback(os.close, far)
            tcsetwinsize(ours, (PTY_ROWS, PTY_COLUMNS))
            stdin = _keep(os.dup(ours), on_failure) if command.stdin else None
            os.set_blocking(ours, False)
            return Streams(ours, stdin, pty=True), [far]
        ours, far = os.pipe()
        on_failure.callback(os.close, ours)
        theirs.callback(os.close, far)
        os.set_blocking(ours, False)
        if not command.stdin:
            return Streams(ours, None, pty=False), [far]
        reader, writer = os.pipe()
        theirs.callback(os.close, reader)
        os.set_blocking(_keep(writer, on_failure), False)
        return Streams(ours, writer, pty=False), [far, reader]
    except OSError as error:
        raise StartFailed(f"no descriptors for the command's output: {error.strerror}") from error


def _keep(descriptor: int, on_failure: ExitStack) -> int:
    on_failure.callback(os.close, descriptor)
    return descriptor


def _reason(stage: int, number: int, request: Request) -> str:
    """Say what stopped the start: it names the directory or the program, not our machinery."""
    directory = os.fsdecode(request.cwd)
    program = os.fsdecode(request.argv[0])
    said = os.strerror(number)
    match stage, number:
        case _, errno.E2BIG:
            return f"arguments and environment of {program!r} are too long for this system"
        case (wire.STAGE_DIRECTORY, errno.ENOENT):
            return f"working directory {directory!r} does not exist"
        case (wire.STAGE_DIRECTORY, errno.ENOTDIR):
            return f"working directory {directory!r} is not a directory"
        case (wire.STAGE_DIRECTORY, errno.EACCES):
            return f"working directory {directory!r} may not be entered: {said}"
        case (wire.STAGE_DIRECTORY, _):
            return f"working directory {directory!r} cannot be used: {said}"
        case (wire.STAGE_PROGRAM, errno.ENOENT) if "/" in program:
            return f"program {program!r} or the interpreter in its first line does not exist"
        case (wire.STAGE_PROGRAM, errno.ENOENT):
            return f"program {program!r} was not found on PATH"
        case (wire.STAGE_PROGRAM, errno.EACCES):
            return f"program {program!r} may not be run: {said}"
        case (wire.STAGE_PROGRAM, errno.ENOEXEC):
            return f"program {program!r} is not executable here: {said}"
        case _:
            return f"{program!r} cannot be started: {said}"
