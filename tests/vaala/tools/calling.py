"""Call tools as a session does: prepare, then run, with everything that a call can reach."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio

from vaala.tools.base import PreparedCall, ReadRecord, ToolContext, ToolFailure, ToolResult
from vaala.tools.builtin import builtin_tools
from vaala.tools.commands import SessionCommands
from vaala.tools.registry import ToolSet
from vaala.tools.running_command import SessionCommand
from vaala_executors import Workspace
from vaala_protocol.content import text_of
from vaala_protocol.state import CommandEnded, CommandInfo
from vaala_storage.blobs import BlobWriter

NOW_MS = 1_700_000_000_000


class MemoryWriter(BlobWriter):
    def __init__(self, blobs: MemoryBlobs, key: str) -> None:
        self._blobs = blobs
        self._key = key
        self._data = bytearray()

    async def write(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if self._blobs.fails:
            raise OSError("no space left on the device")
        self._data += data

    async def commit(self) -> None:
        await trio.lowlevel.checkpoint()
        self._blobs.kept[self._key] = bytes(self._data)


@dataclass
class MemoryBlobs:
    kept: dict[str, bytes] = field(default_factory=dict)
    fails: bool = False

    @asynccontextmanager
    async def open(self, key: str) -> AsyncIterator[BlobWriter]:
        yield MemoryWriter(self, key)

    async def save(self, data: bytes) -> str:
        if self.fails:
            raise OSError("no space left on the device")
        key = f"saved-{len(self.kept)}"
        self.kept[key] = data
        return key

    async def load(self, key: str, offset: int, length: int) -> bytes:
        if key not in self.kept:
            raise ToolFailure(f"there is no saved output {key!r}")
        return self.kept[key][offset : offset + length]


@dataclass
class Told:
    """What the session is told of its commands."""

    output: list[tuple[str, int, str]] = field(default_factory=list)
    output_at: list[float] = field(default_factory=list)
    backgrounded: list[CommandInfo] = field(default_factory=list)
    ended: list[CommandEnded] = field(default_factory=list)
    news: trio.Event = field(default_factory=trio.Event)

    def command_output(self, command: SessionCommand, index: int, text: str) -> None:
        self.output.append((command.id, index, text))
        self.output_at.append(trio.current_time())

    def command_in_background(self, info: CommandInfo) -> None:
        self.backgrounded.append(info)

    def command_ended(self, info: CommandInfo, ended: CommandEnded) -> None:
        self.ended.append(ended)
        self.news.set()


@dataclass
class FakeAgents:
    spawned: list[tuple[str, str | None]] = field(default_factory=list)
    results: dict[str, str] = field(default_factory=dict)

    async def spawn(self, task: str, agent: str | None) -> str:
        self.spawned.append((task, agent))
        return f"s{len(self.spawned)}"

    async def wait(self, session_id: str, timeout_s: float) -> str:
        if session_id not in self.results:
            raise ToolFailure(f"session {session_id} has no result after {timeout_s:g} s")
        return self.results[session_id]


class Caller:
    def __init__(
        self, workspace: Workspace, nursery: trio.Nursery, tools: ToolSet | None = None
    ) -> None:
        self.workspace = workspace
        self.tools = tools or builtin_tools()
        self.reads: dict[str, ReadRecord] = {}
        self.blobs = MemoryBlobs()
        self.agents = FakeAgents()
        self.told = Told()
        self.foreground_s = 120.0
        self.commands = SessionCommands(
            nursery,
            session_id="session",
            events=self.told,
            open_blob=self.blobs.open,
            now_ms=lambda: NOW_MS,
        )

    def context(self, call_id: str = "call") -> ToolContext:
        return ToolContext(
            call_id=call_id,
            workspace=self.workspace,
            commands=self.commands,
            agents=self.agents,
            reads=self.reads,
            publish=lambda text: None,
            save=self.blobs.save,
            load=self.blobs.load,
            command_foreground_s=self.foreground_s,
        )

    async def prepare(self, name: str, /, **arguments: Any) -> PreparedCall:
        return await self.tools.prepare(name, json.dumps(arguments), self.workspace)

    async def call(self, name: str, /, **arguments: Any) -> ToolResult:
        call = await self.prepare(name, **arguments)
        result = await call.run(self.context())
        text_of(result.content).encode()  # clean, whatever the tool has met (D5-1)
        return result

    async def text(self, name: str, /, **arguments: Any) -> str:
        return text_of((await self.call(name, **arguments)).content)

    async def failure(self, name: str, /, **arguments: Any) -> str:
        with pytest.raises(ToolFailure) as caught:
            await self.call(name, **arguments)
        str(caught.value).encode()
        return str(caught.value)
