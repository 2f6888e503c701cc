"""A client that stops reading: what it costs the others and the server, and how it comes back.

    python bench/slow_reader.py                             turns of 200 MB, three pairs
    python bench/slow_reader.py --megabytes 20 --pairs 1

For each turn there is a server with its data on disk, and here, in another process, a driver
(`vaala.client`) that follows it to its end. A turn streams and logs text, reasoning and arguments.
Turns without and with a stopped reader take turns; that one subscribes on a socket of its own and
does not read again before the turn has ended. Then a short turn shows that it follows, and its
state is compared with the driver's, byte by byte.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

import trio
from msgspec.structs import replace
from trio_websocket import WebSocketConnection, wrap_client_stream

from vaala import Settings
from vaala.client import Reader, RemoteConversation, connect
from vaala.discovery import AUTHORIZATION_HEADER, WEBSOCKET_PATH, bearer
from vaala.testing.projection import Projection
from vaala_protocol.base import Value, encode
from vaala_protocol.events import Frame, TurnChanged
from vaala_protocol.limits import ANSWER_BYTES_MAX
from vaala_protocol.methods.base import Request
from vaala_protocol.methods.conversation import (
    ConversationSubscribeParams,
    EventNotification,
    ResyncNotification,
)
from vaala_protocol.methods.runtime import ClientInfo, InitializeParams
from vaala_protocol.methods.session import SessionItemsParams
from vaala_protocol.rpc import Answer, Note, client_peer
from vaala_protocol.state import Snapshot

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from bench.serving import Server, serve  # noqa: E402 # the path comes first

R = TypeVar("R", bound=Value)

TEXT = ("word " * 15 + "\n") * 3_000
CALLS = ("a.txt", "b.txt", "c.txt", "d.txt")
STEP_BYTES = (2 + len(CALLS)) * len(TEXT)
SIGN_PERIOD_S = 15.0
"""The server takes a client for dead that neither reads nor sends anything for 60 s."""


def script(steps: int, chunk: int) -> str:
    """Return a script whose steps think, say and write the same text, which it holds once."""
    calls = [f"{{tool: write_file, arguments: {{path: {name}, content: *text}}}}" for name in CALLS]
    return f"""chunk: {chunk}
steps:
  - repeat: {steps}
    steps:
      - think: &text {json.dumps(TEXT)}
        say: *text
        call: [{", ".join(calls)}]
  - say: Done.
"""


class Gate(trio.abc.Stream):
    """A socket that is read only while ``flows`` is set."""

    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self.flows = trio.Event()
        self.flows.set()

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        await self.flows.wait()
        return bytes(await self._stream.receive_some(max_bytes))

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def aclose(self) -> None:
        await self._stream.aclose()


class SlowReader:
    """A client of its own, which reads exactly when it is told."""

    def __init__(self, gate: Gate, socket: WebSocketConnection) -> None:
        self._gate = gate
        self._socket = socket
        self._peer = client_peer()
        self.projection = Projection()
        self.frames = 0
        self.resyncs: list[int] = []
        """The numbers of the snapshots that came in place of frames."""

    def stop(self) -> None:
        self._gate.flows = trio.Event()

    def go_on(self) -> None:
        self._gate.flows.set()

    async def live(self) -> None:
        """Show now and then that this client is alive, which needs no reading."""
        while True:
            await trio.sleep(SIGN_PERIOD_S)
            await self._socket.pong(b"")

    async def ask(self, params: Request[R]) -> R:
        id, message = self._peer.ask(params)
        await self._socket.send_message(message.decode())
        while True:
            if (answer := await self._receive(id)) is not None:
                if answer.error is not None:
                    raise answer.error
                result: R = answer.result
                return result

    async def follow(self, seq: int) -> None:
        """Read until the state is that of a number, or a later one."""
        while self.projection.state.seq < seq:
            await self._receive(-1)

    async def _receive(self, id: int) -> Answer | None:
        """Take one message in; return the answer to a request when it was that."""
        found: Answer | None = None
        for incoming in self._peer.receive(await self._socket.get_message()):
            match incoming:
                case Note(params=EventNotification(frame=frame)):
                    self.frames += 1
                    self.projection.apply(frame)
                case Note(params=ResyncNotification(snapshot=snapshot)):
                    self.resyncs.append(snapshot.seq)
                    self.projection.apply(snapshot)
                case Answer() if incoming.id == id:
                    found = incoming
                case _:
                    raise AssertionError(f"nobody has asked for {incoming}")
        return found


@asynccontextmanager
async def slow_reader(server: Server, conversation_id: str) -> AsyncGenerator[SlowReader]:
    """A client that has subscribed, and has stopped reading."""
    headers = [(AUTHORIZATION_HEADER.encode(), bearer(server.token).encode())]
    gate = Gate(await trio.open_tcp_stream("127.0.0.1", server.port))
    async with gate, trio.open_nursery() as nursery:
        socket = await wrap_client_stream(
            nursery, gate,  # type: ignore[arg-type] # any stream will do
            f"127.0.0.1:{server.port}", WEBSOCKET_PATH, extra_headers=headers,
            max_message_size=ANSWER_BYTES_MAX,
        )  # fmt: skip
        reader = SlowReader(gate, socket)
        await reader.ask(InitializeParams(client=ClientInfo(name="slow", version="1")))
        params = ConversationSubscribeParams(conversation_id=conversation_id)
        snapshot = (await reader.ask(params)).snapshot
        assert snapshot is not None
        reader.projection.apply(snapshot)
        reader.stop()
        nursery.start_soon(reader.live)
        yield reader
        nursery.cancel_scope.cancel()


class Driver:
    """Sends prompts to one conversation and follows their turns."""

    def __init__(self, talk: RemoteConversation, updates: Reader[Snapshot, Frame]) -> None:
        self._talk = talk
        self._updates = updates
        self._last: str | None = None
        """The newest turn that has ended."""
        self.projection = Projection()
        self.snapshots = 0

    async def turn(self, prompt: str, model: str) -> float:
        """Return the seconds from the sending to the news that the turn has ended."""
        began = time.monotonic()
        await self._talk.send(prompt, settings=Settings(model=model, mode="full"))
        async for update in self._updates:
            self.projection.apply(update)
            match update:
                case Snapshot():
                    self.snapshots += 1
                    turn = update.sessions[0].turn if update.sessions else None
                case Frame(event=TurnChanged(turn=turn)):
                    pass
                case _:
                    continue
            if turn is not None and turn.state != "running" and turn.id != self._last:
                assert turn.stop_reason == "end_turn", turn
                self._last = turn.id
                return time.monotonic() - began
        raise AssertionError(f"nothing more comes: {self._updates.reason}")


@dataclass(frozen=True)
class Figures:
    took_s: float
    cpu_s: float
    logged_mb: float
    before_mb: float
    peak_mb: float
    later_mb: float
    """At most, with the turn after it: an answer to all that was missed is made in it."""
    after_mb: float


async def measure(server: Server, work: Path, *, stopped: bool) -> Figures:
    long, short = (f"scripted:{work}/{name}.yaml" for name in ("long", "short"))
    async with connect(server.data, start=False) as client, AsyncExitStack() as stack:
        directory = tempfile.mkdtemp(dir=work)
        talk = await client.create_conversation(directory=directory)
        driver = Driver(talk, await stack.enter_async_context(talk.subscribe()))
        await driver.turn("warm up", short)
        slow = await stack.enter_async_context(slow_reader(server, talk.id)) if stopped else None
        server.forget_peak()
        before_mb, cpu_s = server.memory_mb(), server.cpu_seconds()
        took_s = await driver.turn("go", long)
        cpu_s, peak_mb = server.cpu_seconds() - cpu_s, server.peak_mb()
        if slow is None:
            await driver.turn("go on", short)
        else:
            await recover(driver, slow, short)
        later_mb, files_mb = server.peak_mb(), logged_mb(server)
        await client.delete_conversation(talk.id)
        await trio.sleep(1)  # what is freed is given back in a moment
        after_mb = server.memory_mb()
        return Figures(took_s, cpu_s, files_mb, before_mb, peak_mb, later_mb, after_mb)


async def recover(driver: Driver, slow: SlowReader, model: str) -> None:
    """Let the slow one read again, and compare what both know, before another turn and after.

    A snapshot that was made, and had begun to leave, while nobody read is no answer to the reading:
    it comes when the queue overflows before the kernel's buffers are full.
    """
    end = driver.projection.state.seq
    slow.go_on()
    with trio.fail_after(30):
        await slow.follow(end)
        frames = slow.frames
        await driver.turn("go on", model)
        await slow.follow(driver.projection.state.seq)
    late = [seq for seq in slow.resyncs if seq >= end]
    same = await whole(slow, driver.projection.state) == encode(driver.projection.state)
    early = len(slow.resyncs) - len(late)
    print(f"  reads again: {frames} frames and {early} resyncs that were on their way, "
          f"{len(late)} resync, then {slow.frames - frames} frames of a short turn; "
          f"state {'equals' if same else 'DIFFERS FROM'} the driver's", flush=True)  # fmt: skip
    assert (len(late), same) == (1, True)


async def whole(slow: SlowReader, wanted: Snapshot) -> bytes:
    """Return the slow one's state with as many old items as the driver has: a snapshot holds
    fewer when they are long, and a client asks for those before them."""
    state = slow.projection.state
    session, size = state.sessions[0], len(wanted.sessions[0].items)
    items = session.items[-size:]
    while len(items) < size:
        params = SessionItemsParams(
            conversation_id=state.conversation.id, before=items[0].at, limit=size - len(items)
        )
        items = (*(await slow.ask(params)).items, *items)
    return encode(replace(state, sessions=(replace(session, items=items), *state.sessions[1:])))


def logged_mb(server: Server) -> float:
    files = (server.data / "conversations").rglob("*")
    sizes = [file.stat().st_size for file in files if file.is_file()]
    return sum(sizes) / 1e6


def compare(given: argparse.Namespace, root: Path) -> None:
    """Measure turns of both kinds, each with a server of its own: their memory begins equal."""
    taken: dict[bool, list[Figures]] = {False: [], True: []}
    for number in range(2 * given.pairs):
        # Which one comes first changes from pair to pair.
        stopped = number % 4 in (1, 2)
        with serve(root / str(number), {}) as server:
            one = trio.run(partial(measure, server, root, stopped=stopped))
        taken[stopped].append(one)
        print(f"{'with' if stopped else 'without'} a stopped reader: {one.took_s:.2f} s, "
              f"{one.cpu_s:.2f} s CPU of the server, {one.logged_mb:.0f} MB logged; memory "
              f"{one.before_mb:.0f} MB before, {one.peak_mb:.0f} at most, {one.later_mb:.0f} with "
              f"the short turn, {one.after_mb:.0f} when the conversation was deleted",
              flush=True)  # fmt: skip
    pairs = list(zip(*taken.values(), strict=True))
    ratio = statistics.median(more.took_s / less.took_s for less, more in pairs)
    spent = statistics.median(more.cpu_s / less.cpu_s for less, more in pairs)
    grown = statistics.median(more.peak_mb - less.peak_mb for less, more in pairs)
    later = statistics.median(more.later_mb - less.later_mb for less, more in pairs)
    print(f"with the reader a turn takes {ratio:.3f} x as long and {spent:.3f} x the CPU, and the "
          f"server {grown:+.0f} MB at most, {later:+.0f} MB with the short turn (medians of "
          f"{given.pairs})")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=200, help="that a turn logs")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--chunk", type=int, default=2048, help="characters of a delta")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        steps = -(-given.megabytes * 10**6 // STEP_BYTES)
        (root / "long.yaml").write_text(script(steps, given.chunk))
        (root / "short.yaml").write_text(script(0, given.chunk))
        compare(given, root)


if __name__ == "__main__":
    main()
