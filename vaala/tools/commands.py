"""`SessionCommands`: the commands of one session, each pumped by a task in the session's nursery.

A command belongs to the session: it outlives its call when it was put in the background, and dies
with the nursery. Output is pulled as it comes; what is kept of it in memory is bounded.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Protocol

import trio

from vaala.tools import limits
from vaala.tools.base import Commands, RunningCommand, ToolFailure
from vaala.tools.live_output import LiveOutput
from vaala.tools.running_command import SessionCommand, Started
from vaala.tools.saved_output import OpenBlob, SavedOutput
from vaala.tools.text import clean_line
from vaala_executors.errors import ExecutorError
from vaala_executors.process import Command, Exit, Process
from vaala_executors.workspace import Workspace
from vaala_protocol.state import CommandEnded, CommandInfo

_log = logging.getLogger(__name__)


class CommandEvents(Protocol):
    """What the owning session is told, synchronously; nothing here may block or raise."""

    def command_output(self, command: SessionCommand, index: int, text: str) -> None:
        """More output, clean; may drop. ``index`` counts the bytes of output before the text."""
        ...

    def command_in_background(self, info: CommandInfo) -> None:
        """The call is over and the command goes on."""
        ...

    def command_ended(self, info: CommandInfo, ended: CommandEnded) -> None:
        """A background command has ended: told exactly once, never for one in the foreground."""
        ...


class SessionCommands(Commands):
    """``nursery`` is the session's: cancelling it ends every command, and nothing is told then."""

    def __init__(
        self,
        nursery: trio.Nursery,
        *,
        session_id: str,
        events: CommandEvents,
        open_blob: OpenBlob,
        now_ms: Callable[[], int],
        running_max: int = limits.COMMANDS_RUNNING_MAX,
    ) -> None:
        self._nursery = nursery
        self._session_id = session_id
        self._events = events
        self._open_blob = open_blob
        self._now_ms = now_ms
        self._running_max = running_max
        self._running: dict[str, SessionCommand] = {}
        self._ended: dict[str, SessionCommand] = {}

    def infos(self) -> tuple[CommandInfo, ...]:
        """Return the commands that run in the background, oldest first."""
        return tuple(item.info() for item in self._running.values() if item.background)

    @property
    def running(self) -> int:
        return len(self._running)

    async def start(
        self,
        command: Command,
        *,
        text: str,
        workspace: Workspace,
        call_id: str,
        timeout_s: float | None = None,
    ) -> RunningCommand:
        if len(self._running) >= self._running_max:
            raise ToolFailure(
                f"{len(self._running)} commands of this session are running, the most there may "
                f"be: {self._list(self._running)}. Wait for one, or interrupt it with write_stdin"
            )
        running = SessionCommand(
            Started(
                id=self._new_id(),
                call_id=call_id,
                session_id=self._session_id,
                command=text,
                cwd=command.cwd,
                executor=workspace.executor,
                started_at=self._now_ms(),
                has_input=command.stdin,
                has_terminal=command.pty,
            ),
            self._put_in_background,
        )
        self._running[running.id] = running
        try:
            await self._nursery.start(self._pump, running, command, workspace, timeout_s)
        except ExecutorError as error:
            raise ToolFailure(str(error)) from error
        finally:
            if not running.attached:
                del self._running[running.id]
        return running

    def find(self, command_id: str) -> SessionCommand | None:
        """Return a command that runs or ended lately."""
        return self._running.get(command_id) or self._ended.get(command_id)

    def get(self, command_id: str) -> RunningCommand:
        found = self.find(command_id)
        if found is None:
            shown = clean_line(command_id, limits.VALUE_TEXT_CHARS_MAX)
            raise ToolFailure(
                f"there is no command {shown!r}. Running: {self._list(self._running)}. "
                f"Ended: {self._list(self._ended)}"
            )
        return found

    def _list(self, commands: dict[str, SessionCommand]) -> str:
        return (
            ", ".join(f"{item.id} ({clean_line(item.command, 30)})" for item in commands.values())
            or "none"
        )

    def _new_id(self) -> str:
        """Return an id that is short, as models write it, and not used before a restart either."""
        while (name := f"c{secrets.token_hex(3)}") in self._running or name in self._ended:
            pass
        return name

    def _put_in_background(self, running: SessionCommand) -> None:
        self._events.command_in_background(running.info())
        if running.exit is not None:
            self._tell_end(running)

    async def _pump(
        self,
        running: SessionCommand,
        command: Command,
        workspace: Workspace,
        timeout_s: float | None,
        task_status: trio.TaskStatus[None],
    ) -> None:
        context = AsyncExitStack()
        # What fails here goes to the caller of `start`; what fails later is contained.
        process = await context.enter_async_context(workspace.start(command))
        running.attach(process)
        task_status.started()
        try:
            async with context:
                ended, saved = await self._follow(running, process, timeout_s)
            await running.finish(ended, saved.key, saved.note)
        except* Exception as group:
            _log.error("command %s was lost", running.id, exc_info=group)
        finally:
            running.lose()
            self._retire(running)
        # Not reached on cancel. Nothing is awaited between the settled end and this.
        if running.background:
            self._tell_end(running)

    async def _follow(
        self, running: SessionCommand, process: Process, timeout_s: float | None
    ) -> tuple[Exit, SavedOutput]:
        live = LiveOutput(partial(self._events.command_output, running))
        async with SavedOutput(self._open_blob) as saved:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(live.run)
                if timeout_s is not None:
                    nursery.start_soon(running.end_after, timeout_s)
                async for data in process.output():
                    await running.feed(data)
                    live.add(data)
                    await saved.take(data)
                ended = await process.wait()
                nursery.cancel_scope.cancel()
            live.flush()
            await saved.finish()
        return ended, saved

    def _retire(self, running: SessionCommand) -> None:
        del self._running[running.id]
        self._ended[running.id] = running
        while len(self._ended) > limits.COMMANDS_REMEMBERED_MAX:
            del self._ended[next(iter(self._ended))]

    def _tell_end(self, running: SessionCommand) -> None:
        ended = running.exit or Exit(None, None)
        told = CommandEnded(
            command_id=running.id,
            tool_call_id=running.started.call_id,
            command=running.command,
            exit_code=ended.code,
            signal=ended.signal,
            lost=running.lost,
            output=running.peek_new(limits.COMMAND_END_BYTES_MAX),
        )
        self._events.command_ended(running.info(), told)
