"""`vaala serve`, in this process or as one of its own, and a client that speaks JSON-RPC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import trio
from trio_websocket import WebSocketConnection, wrap_client_stream

from vaala.discovery import WEBSOCKET_PATH, ServerRecord, bearer, read_record
from vaala.discovery.place import place_of
from vaala.discovery.record import NoRecord
from vaala.server.serve import serve
from vaala.server.settings import ServeSettings
from vaala.server.stopping import Stop
from vaala_protocol.ids import new_id

PROGRAM = [sys.executable, "-m", "vaala"]


@dataclass
class Talk:
    """A client; ``events`` are the notifications that came meanwhile."""

    socket: WebSocketConnection
    events: list[dict[str, Any]] = field(default_factory=list)
    greeting: dict[str, Any] = field(default_factory=dict)
    """What the server said at first."""
    _last: int = 0

    async def ask(self, method: str, **params: Any) -> Any:
        """Return the result; raises RuntimeError for an error."""
        await self.begin(method, **params)
        while True:
            message = json.loads(await self.socket.get_message())
            if message.get("id") != self._last:
                self.events.append(message)
            elif "error" in message:
                raise RuntimeError(message["error"]["message"])
            else:
                return message["result"]

    async def greet(self) -> None:
        """Say hello."""
        self.greeting = await self.ask(
            "runtime/initialize", client={"name": "test", "version": "1"}
        )

    async def begin(self, method: str, **params: Any) -> None:
        """Ask without waiting for the answer."""
        self._last += 1
        request = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        await self.socket.send_message(json.dumps(request))

    async def until(self, text: str) -> None:
        """Wait for a notification that holds a text."""
        while not any(text in json.dumps(event) for event in self.events):
            self.events.append(json.loads(await self.socket.get_message()))

    async def say(self, conversation_id: str, text: str) -> None:
        await self.ask(
            "session/send", conversationId=conversation_id, clientId=new_id(),
            content=[{"type": "text", "text": text}],
        )  # fmt: skip


@asynccontextmanager
async def connected(record: ServerRecord) -> AsyncGenerator[Talk]:
    """Connect and say nothing yet; the socket is closed in the end."""
    assert record.host is not None
    assert record.port is not None
    stream = await trio.open_tcp_stream(record.host, record.port)
    headers = [(b"Authorization", bearer(record.token).encode())]
    async with stream, trio.open_nursery() as nursery:
        socket = await wrap_client_stream(
            nursery, stream, f"{record.host}:{record.port}", WEBSOCKET_PATH, extra_headers=headers
        )
        yield Talk(socket)
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def talk(record: ServerRecord) -> AsyncGenerator[Talk]:
    """Connect and say hello."""
    async with connected(record) as client:
        await client.greet()
        yield client


@dataclass
class Served:
    record: ServerRecord
    stop: Stop
    ended: trio.Event

    async def end(self) -> None:
        """End the server in order and wait for that."""
        self.stop.ask("the test ends")
        with trio.fail_after(20):
            await self.ended.wait()


@asynccontextmanager
async def served(
    data: Path, environ: Mapping[str, str] = os.environ, **options: Any
) -> AsyncGenerator[Served]:
    """Serve in this process while the block runs, by default on a free port."""
    settings = ServeSettings(data=data, **{"port": 0, **options})
    stop, ended = Stop(), trio.Event()
    opened: list[ServerRecord] = []
    is_ready = trio.Event()

    def ready(record: ServerRecord) -> None:
        opened.append(record)
        is_ready.set()

    async def run() -> None:
        await serve(settings, environ, stop, ready)
        ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await is_ready.wait()
        yield Served(opened[0], stop, ended)
        stop.ask("the test ends")


@dataclass
class Program:
    process: subprocess.Popen[bytes]
    report: dict[str, Any]
    record: ServerRecord | None

    def wait(self) -> int:
        return self.process.wait(timeout=60)


@asynccontextmanager
async def program(
    data: Path, *options: str, prefix: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> AsyncGenerator[Program]:
    """Run `vaala serve` as a process until it has reported; it is killed when it still runs."""
    reader, writer = os.pipe()
    command = [*prefix, *PROGRAM, "serve", "--data-dir", str(data), "--ready-fd", str(writer)]
    process = _start([*command, *options], writer, environ)
    os.close(writer)
    try:
        line = b""
        async with trio.lowlevel.FdStream(reader) as pipe:
            with trio.fail_after(60):
                while not line.endswith(b"\n"):
                    chunk = await pipe.receive_some()
                    if not chunk:
                        break
                    line += chunk
        found = read_record(place_of(data, environ).record, data)
        record = None if isinstance(found, NoRecord) else found
        yield Program(process, json.loads(line) if line else {}, record)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _start(
    command: Sequence[str], writer: int, environ: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, pass_fds=(writer,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env=dict(environ),
    )  # fmt: skip
