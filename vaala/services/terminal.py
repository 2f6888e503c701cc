"""`ClientProcess`: a command in a terminal of a client, as any other process of an executor.

The client has a terminal and we have its text: there is no pid, no standard input, no signal but
the end, and stderr is not apart. When the client goes, its terminal goes with it or not; nothing
can be known of the command, and its output says so.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Literal

import trio

from vaala.services import limits
from vaala.services.base import ClientTerminals, TerminalCommand
from vaala.services.errors import ServiceFailure
from vaala.services.live import UNTIL_ANSWERED, LiveOffer
from vaala.tools.text import size_text
from vaala_executors.limits import CHUNK_BYTES_MAX
from vaala_executors.local.environment import NON_INTERACTIVE
from vaala_executors.local.executor import default_shell
from vaala_executors.process import Command, Exit, Process

if TYPE_CHECKING:
    from vaala_protocol.methods.client import TerminalExit, TerminalOutputResult

UNKNOWN = Exit(code=None, signal=None)


@asynccontextmanager
async def run_in_terminal(
    live: LiveOffer, command: Command, directory: str, overlay: Mapping[str, str | None]
) -> AsyncGenerator[Process]:
    """Run a command in ``directory`` (absolute), in a new terminal of the client.

    ``overlay`` goes under the command's own environment; a variable that is to be unset stays as
    the client has it. Raises `ServiceFailure` when it cannot be started, or may have been. Leaving
    ends the terminal, shielded and within `limits.TERMINAL_END_S`.
    """
    terminals = live.offer.terminals
    assert terminals is not None
    environment = _environment(command, overlay)
    argv = command.argv
    if command.shell is not None:
        argv = (*default_shell(environment), command.shell)
    start = partial(terminals.start, TerminalCommand(argv[0], argv[1:], directory, environment))
    terminal_id = await live.ask(
        "run a command in a terminal", limits.TERMINAL_START_S, start, changes=True
    )
    process = ClientProcess(live, terminals, terminal_id)
    try:
        yield process
    finally:
        await process.end()


def _environment(command: Command, overlay: Mapping[str, str | None]) -> dict[str, str]:
    # Somebody may look at the terminal, and what is in it: TERM is the terminal's own to say.
    quiet = {name: value for name, value in NON_INTERACTIVE.items() if name != "TERM"}
    merged = {**quiet, **overlay, **command.env}
    return {name: value for name, value in merged.items() if value is not None}


class ClientProcess(Process):
    """Output is asked for by whoever iterates it or waits for the end, one request at a time."""

    def __init__(self, live: LiveOffer, terminals: ClientTerminals, terminal_id: str) -> None:
        self._live = live
        self._terminals = terminals
        self._id = terminal_id
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._room = trio.Event()
        self._exit: Exit | None = None
        self._over = trio.Event()
        self._complete = False
        """There is no more output than what waits."""
        self._forgotten = False
        """The terminal was ended, or its client is gone: it is asked for nothing more."""
        self._rest_until = math.inf
        """When no more of its output is waited for; known once the terminal was ended."""
        self._asking = trio.Lock()
        self._ending = trio.Lock()
        self._request: trio.CancelScope | None = None
        self._signalled = False

    @property
    def pid(self) -> int:
        """Always 0: the process is the client's."""
        return 0

    def output(self) -> AsyncIterator[bytes]:
        return _Output(self)

    async def write(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise BrokenPipeError(f"a terminal of the client {self._live.client} takes no input")

    async def close_stdin(self) -> None:
        await trio.lowlevel.checkpoint()

    async def resize(self, columns: int, rows: int) -> None:
        await trio.lowlevel.checkpoint()

    def send_signal(self, name: Literal["INT", "TERM", "KILL", "HUP"]) -> None:
        """Whatever the signal, the command is ended, by whoever waits for its output or end."""
        if self._forgotten:
            return
        self._signalled = True
        if self._request is not None:
            self._request.cancel()

    async def wait(self) -> Exit:
        """See `Process.wait`. Reads output ahead, up to a bound, until somebody takes it.

        Cancel: output that was on its way at that moment may be lost.
        """
        while self._exit is None:
            if self._complete:
                await self._over.wait()
            elif self._waiting_bytes > limits.TERMINAL_WAITING_BYTES_MAX:
                self._room = trio.Event()
                await self._room.wait()
            else:
                await self.more(ahead=True)
        await trio.lowlevel.checkpoint()
        return self._exit

    async def end(self) -> Exit:
        """See `Process.end`. Without an answer within the deadline nothing is known of the end."""
        with trio.CancelScope(shield=True):
            async with self._ending:
                if not self._forgotten:
                    self._forgotten = True
                    await self._end()
                    # What the command wrote last may be on its way, in one answer or in several.
                    self._rest_until = trio.current_time() + limits.TERMINAL_REST_S
                    if self._request is not None:
                        self._request.deadline = self._rest_until
        assert self._exit is not None
        return self._exit

    async def _end(self) -> None:
        work = partial(self._terminals.end, self._id)
        try:
            told: TerminalExit = await self._live.ask("end a command", limits.TERMINAL_END_S, work)
        except ServiceFailure as failure:
            if self._exit is None:
                self._lose(failure)
        else:
            self._settle(Exit(told.code, told.signal))

    def take(self) -> bytes | None:
        """Return output that waits."""
        if not self._waiting:
            return None
        piece = self._waiting.popleft()
        self._waiting_bytes -= len(piece)
        self._room.set()
        return piece

    @property
    def complete(self) -> bool:
        return self._complete and not self._waiting

    async def more(self, *, ahead: bool = False) -> None:
        """Ask for output once, unless there will be no more.

        When some waits it is asked for only with ``ahead``.
        """
        if self._signalled and not self._forgotten:
            await self.end()
        async with self._asking:
            if self._complete or (self._waiting and not ahead):
                return
            scope = trio.CancelScope(deadline=self._rest_until)
            self._request = scope
            try:
                with scope:
                    await self._ask()
            finally:
                self._request = None
            if trio.current_time() >= self._rest_until:
                self._complete = True

    async def _ask(self) -> None:
        work = partial(self._terminals.output, self._id)
        what = "give the output of a command"
        try:
            # A command may be silent for hours, and a request that is given up may lose output:
            # the heartbeat of the connection tells whether the client is there.
            told = await self._live.ask(what, UNTIL_ANSWERED, work)
        except ServiceFailure as failure:
            if not self._forgotten:
                self._lose(failure)
            self._complete = True
            return
        self._hear(told)
        if told.exit is None and not told.text:
            # It should have waited for some: it is not asked again in a tight loop.
            await trio.sleep(limits.TERMINAL_EMPTY_PAUSE_S)

    def _hear(self, told: TerminalOutputResult) -> None:
        if told.dropped_bytes > 0:
            left_out = size_text(told.dropped_bytes, "byte")
            self._put(f"\n(… {left_out} left out by the client {self._live.client} …)\n")
        self._put(told.text)
        if told.exit is not None:
            self._settle(Exit(told.exit.code, told.exit.signal))
            self._complete = True

    def _lose(self, failure: ServiceFailure) -> None:
        """Nothing more can be known of the command. A client that is there is still to end it."""
        self._forgotten = self._forgotten or self._live.gone
        self._complete = True
        self._put(f"\n(lost: {failure}; the command may still run)\n")
        self._settle(UNKNOWN)
        if self._request is not None:
            self._request.cancel()

    def _settle(self, ended: Exit) -> None:
        self._exit = self._exit or ended
        self._over.set()
        self._room.set()

    def _put(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        for at in range(0, len(data), CHUNK_BYTES_MAX):
            self._waiting.append(data[at : at + CHUNK_BYTES_MAX])
        self._waiting_bytes += len(data)


class _Output(AsyncIterator[bytes]):
    """Not a generator, so that leaving it half read needs no care."""

    def __init__(self, process: ClientProcess) -> None:
        self._process = process

    async def __anext__(self) -> bytes:
        while not self._process.complete:
            if (piece := self._process.take()) is not None:
                await trio.lowlevel.checkpoint()
                return piece
            await self._process.more()
        raise StopAsyncIteration
