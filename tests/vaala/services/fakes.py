"""Clients that serve what a test wants, each in the way that a test wants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import trio

from vaala.services.base import (
    ClientFiles,
    ClientTerminals,
    ClientTools,
    Elicitor,
    Offer,
    TerminalCommand,
)
from vaala.services.registry import Services
from vaala_protocol.content import TextContent
from vaala_protocol.errors import NotFound
from vaala_protocol.methods.client import (
    OfferedTool,
    TerminalExit,
    TerminalOutputResult,
    ToolRunResult,
)


@dataclass
class Manner:
    """How a client answers: at once, with an error, or never."""

    error: Exception | None = None
    silent: bool = False
    asked: list[str] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)

    async def answer(self, what: str) -> None:
        self.asked.append(what)
        self.news.set()
        try:
            await trio.lowlevel.checkpoint()
            if self.silent:
                await trio.sleep_forever()
        except trio.Cancelled:
            self.cancelled.append(what)
            raise
        if self.error is not None:
            raise self.error


class FakeFiles(ClientFiles):
    """An editor: ``buffers`` by path. What it writes it keeps, and saves when it is told to."""

    def __init__(self, buffers: dict[str, str] | None = None) -> None:
        self.buffers = buffers or {}
        self.manner = Manner()
        self.saves: Callable[[str, str], None] | None = None
        self.silent_when_written = False

    async def read(self, path: str) -> str:
        await self.manner.answer(f"read {path}")
        if path not in self.buffers:
            raise NotFound(f"{path} is not open")
        return self.buffers[path]

    async def write(self, path: str, text: str) -> None:
        await self.manner.answer(f"write {path}")
        self.buffers[path] = text
        if self.saves is not None:
            self.saves(path, text)
        if self.silent_when_written:
            await trio.sleep_forever()


class FakeTerminals(ClientTerminals):
    """One terminal, whose command does what `say` and `exits` tell."""

    def __init__(self) -> None:
        self.manner = Manner()
        self.end_manner = Manner()
        self.started: list[TerminalCommand] = []
        self.ended: list[str] = []
        self.asked_output = 0
        self._say, self._output = trio.open_memory_channel[TerminalOutputResult](math.inf)

    def say(self, text: str, **more: Any) -> None:
        self._say.send_nowait(TerminalOutputResult(text=text, **more))

    def exits(self, code: int | None = 0, signal: int | None = None, *, text: str = "") -> None:
        self.say(text, exit=TerminalExit(code=code, signal=signal))

    def breaks(self) -> None:
        """The client knows nothing of its terminal any more."""
        self._say.close()

    async def start(self, command: TerminalCommand) -> str:
        await self.manner.answer("start")
        self.started.append(command)
        return f"t{len(self.started)}"

    async def output(self, terminal_id: str) -> TerminalOutputResult:
        self.asked_output += 1
        try:
            return await self._output.receive()
        except trio.EndOfChannel:
            raise NotFound(f"no terminal {terminal_id}") from None

    async def end(self, terminal_id: str) -> TerminalExit:
        await self.end_manner.answer("end")
        self.ended.append(terminal_id)
        self.exits(None, 15, text="last words\n")
        return TerminalExit(signal=15)


class FakeTools(ClientTools):
    def __init__(self, *tools: OfferedTool) -> None:
        self.tools = tools
        self.connection: Connection | None = None
        """For tests to which it is all the same when the client goes."""
        self.manner = Manner()
        self.calls: list[tuple[str, str, dict[str, Any]]] = []
        self.result = ToolRunResult(content=(TextContent(text="done"),))

    @property
    def offered(self) -> Sequence[OfferedTool]:
        return self.tools

    async def run(self, call_id: str, name: str, arguments: dict[str, Any]) -> ToolRunResult:
        await self.manner.answer(f"run {name}")
        self.calls.append((call_id, name, arguments))
        return self.result


class FakeElicitor(Elicitor):
    def __init__(self, answer: str | None = "yes") -> None:
        self.manner = Manner()
        self.reply = answer

    async def elicit(self, question_id: str, text: str, choices: Sequence[str]) -> str | None:
        await self.manner.answer(text)
        return self.reply


def a_tool(name: str = "deploy", **more: Any) -> OfferedTool:
    schema = {
        "type": "object",
        "properties": {"target": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["target"],
        "additionalProperties": False,
    }
    fields: dict[str, Any] = {"description": f"{name} it.", "parameters": schema}
    return OfferedTool(name=name, **(fields | more))


class Connection:
    """A client that can come and go by itself, while something is asked of it."""

    def __init__(self, services: Services, offer: Offer) -> None:
        self._stack = ExitStack()
        self._stack.enter_context(services.offer(offer))

    def close(self) -> None:
        self._stack.close()
