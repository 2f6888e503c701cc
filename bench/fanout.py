"""Many viewers of live conversations: how late a delta arrives, and what the server spends.

    python bench/fanout.py                                   100 conversations, 10 viewers each
    python bench/fanout.py --conversations 10 --viewers 5 --seconds 10

Five processes or more: a model server that writes the time of sending (the monotonic clock, which
all processes of a machine share) into each delta, ``vaala serve``, a driver that sends the prompts
and the viewers, spread over processes. A delta's latency runs from the model server's write to
the moment that a viewer has parsed its text; one that waited to be merged counts from its first.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import h11
import trio

from vaala.discovery import AUTHORIZATION_HEADER, WEBSOCKET_PATH, Ready, bearer, parse_report
from vaala_protocol.ids import new_id
from vaala_protocol.methods.runtime import PROTOCOL_VERSION

STAMP = re.compile(rb"(\d{10,})ns")
TICK = os.sysconf("SC_CLK_TCK")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", default="all", choices=("all", "model", "viewers"))
    parser.add_argument("--conversations", type=int, default=100)
    parser.add_argument("--viewers", type=int, default=10, help="of each conversation")
    parser.add_argument("--rate", type=float, default=5.0, help="deltas a second")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=2, help="of viewers")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--token", default="")
    return parser.parse_args()


def stamped(number: int) -> bytes:
    delta = {"content": f"{time.monotonic_ns()}ns word {number} "}
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "bench",
             "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}  # fmt: skip
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


END = (
    b'data: {"id":"c","object":"chat.completion.chunk","model":"bench","choices":'
    b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
)


async def model(given: argparse.Namespace) -> None:
    """Serve answers of ``--seconds`` at ``--rate``; all streams tick at different moments."""

    async def answer(stream: trio.SocketStream) -> None:
        connection = h11.Connection(h11.SERVER)
        while (event := connection.next_event()) is not h11.PAUSED:
            if event is h11.NEED_DATA:
                connection.receive_data(await stream.receive_some(65_536))
            elif isinstance(event, h11.EndOfMessage):
                await respond(connection, stream)
                return
            elif isinstance(event, h11.ConnectionClosed):
                return

    async def respond(connection: h11.Connection, stream: trio.SocketStream) -> None:
        headers = [("content-type", "text/event-stream"), ("connection", "close")]
        head = h11.Response(status_code=200, headers=headers)
        await stream.send_all(connection.send(head) or b"")
        next_at = trio.current_time()
        for number in range(int(given.seconds * given.rate)):
            next_at += 1 / given.rate
            await trio.sleep_until(next_at)
            await stream.send_all(connection.send(h11.Data(data=stamped(number))) or b"")
        await stream.send_all(connection.send(h11.Data(data=END)) or b"")
        await stream.send_all(connection.send(h11.EndOfMessage()) or b"")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(trio.serve_tcp, answer, 0)
        print(listeners[0].socket.getsockname()[1], flush=True)


class Peer:
    """A bare client that reads frames itself: the bench measures the server, and a thousand clients
    share the machine with it."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._data = bytearray()
        self._number = 0

    async def open(self, given: argparse.Namespace) -> None:
        await self._stream.send_all(
            f"GET {WEBSOCKET_PATH} HTTP/1.1\r\nHost: 127.0.0.1:{given.port}\r\n"
            f"{AUTHORIZATION_HEADER}: {bearer(given.token)}\r\nUpgrade: websocket\r\n"
            "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode()
        )
        while (end := self._data.find(b"\r\n\r\n")) < 0:
            await self._read()
        assert self._data.startswith(b"HTTP/1.1 101"), bytes(self._data)
        del self._data[: end + 4]

    async def ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        call = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        await self._send(0x81, json.dumps(call).encode())
        while True:
            message = json.loads(await self.message())
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(message["error"])
                return message["result"]

    async def message(self) -> bytes:
        """Return the next text; servers send each in one frame (RFC 6455, section 5.2)."""
        while True:
            await self._need(2)
            kind, size, head = self._data[0], self._data[1], 2
            if size >= 126:
                head = 4 if size == 126 else 10
                await self._need(head)
                size = int.from_bytes(self._data[2:head], "big")
            await self._need(head + size)
            payload = bytes(self._data[head : head + size])
            del self._data[: head + size]
            if kind == 0x81:
                return payload
            if kind == 0x88:
                raise trio.ClosedResourceError(payload[2:].decode())
            await self._send(0x8A, payload)

    async def _send(self, kind: int, payload: bytes) -> None:
        size = len(payload)
        head = bytes([kind, 0x80 | size]) if size < 126 else bytes([kind, 0xFE, *size.to_bytes(2)])
        await self._stream.send_all(head + bytes(4) + payload)  # the mask is all zeroes

    async def _need(self, size: int) -> None:
        while len(self._data) < size:
            await self._read()

    async def _read(self) -> None:
        data = await self._stream.receive_some(65_536)
        if not data:
            raise trio.ClosedResourceError("the server has gone")
        self._data += data


@asynccontextmanager
async def peer(given: argparse.Namespace) -> AsyncGenerator[Peer]:
    async with await trio.open_tcp_stream("127.0.0.1", given.port) as stream:
        one = Peer(stream)
        await one.open(given)
        client = {"name": "bench", "version": "1"}
        await one.ask("runtime/initialize", client=client, protocol=PROTOCOL_VERSION)
        yield one


class Seen:
    def __init__(self) -> None:
        self.latencies: list[int] = []
        self.messages = 0
        self.resyncs = 0
        self.subscribed = trio.Semaphore(0)


async def view(given: argparse.Namespace, conversation: str, seen: Seen) -> None:
    try:
        async with peer(given) as one:
            await one.ask("conversation/subscribe", conversationId=conversation)
            seen.subscribed.release()
            while True:
                message = await one.message()
                seen.messages += 1
                if b'"conversation/resync"' in message:
                    seen.resyncs += 1
                elif b'"item/delta"' in message and (found := STAMP.search(message)):
                    seen.latencies.append(time.monotonic_ns() - int(found[1]))
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass


async def viewers(given: argparse.Namespace) -> None:
    """Watch the conversations named on stdin until stdin ends; then tell what was seen."""
    ids = sys.stdin.readline().split()
    seen = Seen()
    async with trio.open_nursery() as nursery:
        for conversation in ids:
            nursery.start_soon(view, given, conversation, seen)
            await trio.sleep(0.004)
        for _ in ids:
            await seen.subscribed.acquire()
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        nursery.cancel_scope.cancel()
    shown = {"latencies": seen.latencies, "messages": seen.messages, "resyncs": seen.resyncs}
    print(json.dumps(shown), flush=True)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_mb(pid: int) -> float:
    line = next(
        line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmRSS" in line
    )
    return int(line.split()[1]) / 1024


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, __file__, *words],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options,
    )  # fmt: skip


def serve(root: Path, model_port: str) -> tuple[subprocess.Popen[Any], dict[str, Any]]:
    config = root / "config" / "vaala"
    config.mkdir(parents=True)
    (config / "providers.yaml").write_text(
        f"bench:\n  base_url: http://127.0.0.1:{model_port}/v1\n  models: [bench]\n"
    )
    reading, writing = os.pipe()
    environ = {**os.environ, "XDG_CONFIG_HOME": str(root / "config"), "HOME": str(root)}
    command = [sys.executable, "-m", "vaala", "serve", "--port", "0", "--data-dir",
               str(root / "data"), "--ready-fd", str(writing)]  # fmt: skip
    process = subprocess.Popen(command, env=environ, pass_fds=[writing], stdout=subprocess.DEVNULL)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        report = parse_report(pipe.readline())
    assert isinstance(report, Ready), report
    record: dict[str, Any] = json.loads((root / "data" / "runtime-server.yaml").read_text())
    return process, record


async def drive(given: argparse.Namespace, server: int, files: list[subprocess.Popen[str]]) -> None:
    async with peer(given) as one:
        ids = [
            (await one.ask("conversation/create", directory="/tmp"))["id"]
            for _ in range(given.conversations)
        ]
        for number, process in enumerate(files):
            assert process.stdin is not None
            assert process.stdout is not None
            mine = ids[number :: len(files)] * given.viewers
            process.stdin.write(" ".join(mine) + "\n")
            process.stdin.flush()
        for process in files:
            assert process.stdout is not None
            assert await trio.to_thread.run_sync(process.stdout.readline) == "ready\n"
        before, idle = cpu_seconds(server), memory_mb(server)
        began = time.monotonic()
        for number, conversation in enumerate(ids):
            await one.ask(
                "session/send", conversationId=conversation, clientId=new_id(),
                content=[{"type": "text", "text": f"go {number}"}],
            )  # fmt: skip
        await trio.sleep(given.seconds + 2)
        spent, took = cpu_seconds(server) - before, time.monotonic() - began
        print(f"server: {spent:.2f} s CPU in {took:.1f} s ({100 * spent / took:.0f} %), "
              f"{idle:.0f} MB with all viewers, {memory_mb(server):.0f} MB after")  # fmt: skip


def main() -> None:
    given = parse()
    if given.role != "all":
        trio.run(model if given.role == "model" else viewers, given)
        return
    with tempfile.TemporaryDirectory() as folder:
        pace = ["--rate", str(given.rate), "--seconds", str(given.seconds)]
        source = start("model", *pace)
        assert source.stdout is not None
        server, record = serve(Path(folder), source.stdout.readline().strip())
        given.port, given.token = record["port"], record["token"]
        where = ["--port", str(given.port), "--token", given.token]
        watching = [start("viewers", *where) for _ in range(given.processes)]
        try:
            trio.run(drive, given, server.pid, watching)
            report(given, watching)
        finally:
            ours: list[subprocess.Popen[Any]] = [*watching, source, server]
            for process in ours:
                process.terminate()
                process.wait()


def report(given: argparse.Namespace, watching: list[subprocess.Popen[str]]) -> None:
    told = [json.loads(process.communicate("\n")[0].splitlines()[-1]) for process in watching]
    latencies = sorted(one for seen in told for one in seen["latencies"])
    expected = int(given.seconds * given.rate) * given.conversations * given.viewers
    print(f"{given.conversations} conversations, {given.viewers} viewers of each, "
          f"{given.rate} deltas a second")  # fmt: skip
    print(f"{sum(seen['messages'] for seen in told)} messages, {len(latencies)} of {expected} "
          f"deltas apart, {sum(seen['resyncs'] for seen in told)} resyncs")  # fmt: skip
    for share in (0.5, 0.9, 0.99, 0.999):
        value = latencies[min(len(latencies) - 1, int(len(latencies) * share))]
        print(f"p{share * 100:g} {value / 1e6:.1f} ms")


if __name__ == "__main__":
    main()
