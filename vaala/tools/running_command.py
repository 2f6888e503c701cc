"""One command of a session: what it has said, what was told of it, how it stands."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from typing import Literal

import trio
from msgspec import Struct

from vaala.tools import limits
from vaala.tools.base import RunningCommand, ToolFailure
from vaala.tools.command_text import describe_exit
from vaala.tools.output_window import OutputWindow
from vaala.tools.text import size_text
from vaala_executors.output import OutputCapture
from vaala_executors.process import Exit, Process
from vaala_protocol.state import CommandInfo

_CONTROLS = re.compile(b"([\x03\x04])")
_UNFINISHED = re.compile(
    rb"(?:\x1b(?:\[[0-?]*[ -/]*)?"
    rb"|[\xc2-\xdf]|[\xe0-\xef][\x80-\xbf]?|[\xf0-\xf4][\x80-\xbf]{0,2})\Z"
)
"""The begin of an escape sequence or of a UTF-8 character, at the end of a piece."""
_UNFINISHED_BYTES_MAX = 32
_MARK_BYTES = 100


class Started(Struct, frozen=True):
    """What is known of a command from its start."""

    id: str
    call_id: str
    session_id: str
    command: str
    cwd: str
    executor: str
    started_at: int
    has_input: bool
    has_terminal: bool = False


class SessionCommand(RunningCommand):
    """Fed by its pump (`vaala.tools.commands`), read by calls."""

    def __init__(self, started: Started, on_background: Callable[[SessionCommand], None]) -> None:
        self.started = started
        self.background = False
        self.lost = False
        self._on_background = on_background
        self._process: Process | None = None
        self._exit: Exit | None = None
        self._timed_out = False
        self._blob: str | None = None
        self._note = ""
        self.attached = False
        self._bytes = 0
        self._omitted = 0
        self._unread = _capture()
        self.window = OutputWindow(limits.COMMAND_WINDOW_BYTES_MAX)
        """The newest output as it came; empty once all of the output is in the blob."""
        self._held = b""
        self._more = trio.Event()
        self._ended = trio.Event()

    @property
    def id(self) -> str:
        return self.started.id

    @property
    def command(self) -> str:
        return self.started.command

    @property
    def exit(self) -> Exit | None:
        return self._exit

    @property
    def timed_out(self) -> bool:
        return self._timed_out

    @property
    def output_bytes(self) -> int:
        return self._bytes

    @property
    def omitted_bytes(self) -> int:
        return self._omitted

    @property
    def output_blob(self) -> str | None:
        return self._blob

    @property
    def note(self) -> str:
        return self._note

    def info(self) -> CommandInfo:
        return CommandInfo(
            id=self.id,
            session_id=self.started.session_id,
            tool_call_id=self.started.call_id,
            command=self.command,
            cwd=self.started.cwd,
            started_at=self.started.started_at,
            executor=self.started.executor,
            output_bytes=self._bytes,
        )

    async def wait(self) -> Exit:
        await self._ended.wait()
        return self._exit or Exit(None, None)

    async def wait_output(self) -> None:
        while self._unread.bytes_total == 0 and self._exit is None:
            await self._more.wait()
        await trio.lowlevel.checkpoint()

    def read_new(self) -> str:
        text, omitted = cut_text(self._unread, limits.COMMAND_OUTPUT_BYTES_MAX)
        self._omitted += omitted
        self._unread = _capture()
        return text

    def peek_new(self, bytes_max: int) -> str:
        """Return the text that `read_new` would give, cut shorter, and leave it unread."""
        return cut_text(self._unread, bytes_max)[0]

    async def write(self, data: bytes) -> None:
        process = self._process
        if process is None or self._exit is not None:
            how = describe_exit(self._exit) if self._exit is not None else ""
            raise ToolFailure(f"command {self.id} has ended. {how}".rstrip())
        with trio.move_on_after(limits.COMMAND_WRITE_S) as waiting:
            for piece in _CONTROLS.split(data):
                await self._send(process, piece)
        if waiting.cancelled_caught:
            raise ToolFailure(
                f"command {self.id} has not read its input for {limits.COMMAND_WRITE_S:g} s; a "
                "part of the text may have reached it"
            )

    async def resize(self, columns: int, rows: int) -> None:
        """Change the size of its terminal; raises `ToolFailure` when it has none."""
        if not self.started.has_terminal:
            raise ToolFailure(f"command {self.id} has no terminal")
        if self._process is not None:
            await self._process.resize(columns, rows)

    async def kill(self, name: Literal["INT", "TERM", "KILL", "HUP"]) -> None:
        """Signal it, or, with TERM or KILL, end its whole tree; nothing when it has ended.

        TERM leaves it a grace, KILL does not. Cancel: the tree is ended.
        """
        if self._process is None or self._exit is not None:
            return
        if name != "TERM":
            self._process.send_signal(name)
        if name in ("TERM", "KILL"):
            await self.end()

    async def _send(self, process: Process, piece: bytes) -> None:
        if piece == b"\x03":
            process.send_signal("INT")
        elif piece == b"\x04":
            await process.close_stdin()
        elif piece and not self.started.has_input:
            raise ToolFailure(
                f"command {self.id} has no input: start it with background set to write to it"
            )
        elif piece:
            try:
                await process.write(piece)
            except BrokenPipeError as error:
                raise ToolFailure(f"command {self.id} reads no input any more") from error

    def to_background(self) -> None:
        if not self.background:
            self.background = True
            self._on_background(self)

    async def end(self) -> Exit:
        """End the whole tree and wait until the output is settled. Cancel: the tree is ended."""
        if self._process is not None and self._exit is None:
            await self._process.end()
        return await self.wait()

    async def end_after(self, seconds: float) -> None:
        """End the tree when its time is up."""
        await trio.sleep(seconds)
        if self._process is not None and self._exit is None:
            self._timed_out = True
            await self._process.end()

    def attach(self, process: Process) -> None:
        self._process = process
        self.attached = True

    async def feed(self, data: bytes) -> None:
        """Take output. What ends inside a character or an escape sequence waits for the rest."""
        self._bytes += len(data)
        self.window.add(data)
        data = self._held + data
        last = data[-_UNFINISHED_BYTES_MAX:]
        found = _UNFINISHED.search(last)
        cut = len(data) - (len(last) - found.start() if found else 0)
        data, self._held = data[:cut], data[cut:]
        if data:
            await self._unread.add(data)
            self._wake()

    async def finish(self, ended: Exit, blob: str | None, note: str) -> None:
        """Settle the end, once. The rest of the output is there before anyone is told."""
        if self._held:
            await self._unread.add(self._held)
            self._held = b""
        self._blob, self._note = blob, note
        if blob is not None and not note:
            self.window.clear()
        self._settle(ended)

    def lose(self) -> None:
        """Settle the end of a command of which nothing more can be known; nothing if it is."""
        if self._exit is None:
            self.lost = True
            self._settle(Exit(code=None, signal=signal.SIGKILL))

    def _settle(self, ended: Exit) -> None:
        self._exit = ended
        self._process = None
        self._wake()
        self._ended.set()

    def _wake(self) -> None:
        self._more.set()
        self._more = trio.Event()


def _capture() -> OutputCapture:
    size = limits.COMMAND_OUTPUT_BYTES_MAX
    return OutputCapture(head_bytes=size, tail_bytes=size)


def cut_text(capture: OutputCapture, bytes_max: int) -> tuple[str, int]:
    """Return clean text, and how many bytes of output were left out of it."""
    cut = capture.cut(bytes_max - _MARK_BYTES)
    if not cut.bytes_omitted:
        return cut.head, 0
    lines = f" in {size_text(cut.newlines_omitted, 'line')}" if cut.newlines_omitted else ""
    mark = f"(… {size_text(cut.bytes_omitted, 'byte')}{lines} left out …)"
    return f"{cut.head.rstrip(chr(10))}\n{mark}\n{cut.tail}", cut.bytes_omitted
