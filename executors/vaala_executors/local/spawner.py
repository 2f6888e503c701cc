"""The runtime's side of the supervisor: start it when first needed, hand commands to it."""

from __future__ import annotations

import array
import logging
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import trio

from vaala_executors.errors import StartFailed
from vaala_executors.limits import END_SECONDS, SUPERVISOR_STOP_SECONDS
from vaala_executors.local.supervisor.wire import RECORD, Request

logger = logging.getLogger(__name__)

FOLDER = str(Path(__file__).parent)
BOOTSTRAP = "import sys; sys.path.append(sys.argv[1]); from supervisor.loop import main; main()"
"""Isolated and without `site`, so that it starts fast and nobody's PYTHONPATH reaches it."""


class Spawner:
    """One supervisor, started at the first command and again should it have died.

    `aclose` is for the owner's ``async with``: it ends all commands and reaps the supervisor.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = dict(environ)
        self._starting = trio.Lock()
        self._supervisor: trio.Process | None = None
        self._main: socket.socket | None = None
        self._closed = False

    async def submit(self, request: Request, descriptors: Sequence[int]) -> socket.socket:
        """Hand a command over; return its line (see `supervisor.wire`).

        The descriptors stay the caller's to close. Raises `StartFailed`. Cancel: what began to
        run has been ended.
        """
        with _no_descriptors_left():
            line, far = socket.socketpair()
        try:
            line.setblocking(False)
            with far:
                await self._hand_over([far.fileno(), *descriptors])
        except BaseException:
            line.close()
            raise
        try:
            await _send_all(line, request.encode())
        except BaseException:
            await end(line)
            raise
        return line

    async def aclose(self) -> None:
        """End every command and the supervisor; shielded, bounded by grace and a margin."""
        self._closed = True
        with trio.CancelScope(shield=True):
            async with self._starting:
                await self._stop()

    async def _hand_over(self, descriptors: Sequence[int]) -> None:
        async with self._starting:
            if self._closed:
                raise StartFailed("the executor is closed: it starts no commands any more")
            if self._main is not None and await self._offer(self._main, descriptors):
                return
            await self._stop()
            main = await self._start()
            if not await self._offer(main, descriptors):
                raise StartFailed(f"the command supervisor died at once: {self._last_words()}")

    async def _offer(self, main: socket.socket, descriptors: Sequence[int]) -> bool:
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))
        while True:
            try:
                main.sendmsg([b"+"], [rights])
            except BlockingIOError:
                await trio.lowlevel.wait_writable(main)
            except OSError:
                logger.error("the command supervisor has died: %s", self._last_words())
                return False
            else:
                return True

    async def _start(self) -> socket.socket:
        with _no_descriptors_left():
            main, far = socket.socketpair()
        main.setblocking(False)
        try:
            with far:
                self._supervisor = await trio.lowlevel.open_process(
                    [sys.executable, "-I", "-S", "-c", BOOTSTRAP, FOLDER],
                    stdin=far,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                    cwd="/",
                    env=self._environ,
                )
        except OSError as error:
            main.close()
            raise StartFailed(f"cannot run {sys.executable!r}: {error.strerror}") from error
        except BaseException:
            main.close()
            raise
        self._main = main
        return main

    async def _stop(self) -> None:
        supervisor, main = self._supervisor, self._main
        self._supervisor = self._main = None
        if main is not None:
            main.close()
        if supervisor is None:
            return
        with trio.move_on_after(SUPERVISOR_STOP_SECONDS):
            await supervisor.wait()
        if supervisor.returncode is None:
            logger.error("the command supervisor did not end in %g s", SUPERVISOR_STOP_SECONDS)
            supervisor.kill()
            await supervisor.wait()

    def _last_words(self) -> str:
        """Return the traceback that a supervisor with a fault of its own leaves behind."""
        try:
            words = self._main.recv(16_384) if self._main is not None else b""
        except OSError:
            words = b""
        return words.decode("utf-8", "replace") or "no word from it, so it was killed"


async def _send_all(line: socket.socket, data: bytes) -> None:
    view = memoryview(data)
    while view:
        try:
            view = view[line.send(view) :]
        except BlockingIOError:
            await trio.lowlevel.wait_writable(line)
        except OSError:
            return  # the supervisor closed it: what it said is read next


async def receive(line: socket.socket, length: int) -> bytes:
    """Return exactly ``length`` bytes, or fewer when the supervisor has closed the line."""
    data = b""
    while len(data) < length:
        try:
            piece = line.recv(length - len(data))
        except BlockingIOError:
            await trio.lowlevel.wait_readable(line)
            continue
        except OSError:
            return data
        if not piece:
            return data
        data += piece
    return data


async def end(line: socket.socket) -> None:
    """End what runs on a line that became no process, and close it; shielded and bounded."""
    with line, trio.move_on_after(END_SECONDS, shield=True), suppress(OSError):
        line.shutdown(socket.SHUT_WR)
        while await receive(line, RECORD.size):
            pass


@contextmanager
def _no_descriptors_left() -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise StartFailed(f"no descriptor for a command: {error.strerror}") from error
