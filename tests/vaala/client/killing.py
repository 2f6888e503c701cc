"""The end of a server in the middle of everything, and what its clients find behind it.

a turn that runs a command with children of all kinds, and an input that waits for its end
another conversation, whose call waits for an approval
two clients that watch both; SIGKILL; whoever comes first starts the next server
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import trio
from trio.testing import wait_all_tasks_blocked

from vaala.client import Client, Reader, RemoteConversation, connect
from vaala.testing.projection import Projection
from vaala_protocol.base import encode
from vaala_protocol.events import Frame
from vaala_protocol.items import Approval, Item, ToolCall
from vaala_protocol.settings import Mode, Settings
from vaala_protocol.state import SessionSnapshot, Snapshot

DEAD_AFTER_S = 2.0
"""What a killed server has started must have ended by then."""
LATER = "and then this"
Kind = TypeVar("Kind", bound=Item)


class Watcher:
    """What one client knows of one conversation."""

    def __init__(self, updates: Reader[Snapshot, Frame]) -> None:
        self._updates = updates
        self._projection = Projection()

    @property
    def whole(self) -> Snapshot:
        return self._projection.state

    @property
    def session(self) -> SessionSnapshot:
        return self.whole.sessions[0]

    def items(self, kind: type[Kind]) -> list[Kind]:
        shown = [*self.session.items, *(part.item for part in self.session.live)]
        return [item for item in shown if isinstance(item, kind)]

    async def until(self, holds: Callable[[Watcher], bool]) -> None:
        """Take updates until something holds; a frame that does not fit is an error."""
        async for update in self._updates:
            self._projection.apply(update)
            if self.whole.sessions and holds(self):
                return
        raise AssertionError(f"nothing more comes: {self._updates.reason}")

    async def opened_again(self) -> None:
        epoch = self.whole.epoch
        await self.until(lambda one: one.whole.epoch != epoch)

    async def level_with(self, other: Watcher) -> None:
        """Let the one that knows less take updates until both know as much."""
        while (here := self.whole.seq) != (there := other.whole.seq):
            behind = self if here < there else other
            await behind.until(lambda _: True)


@dataclass(frozen=True)
class Stage:
    """Everything goes on: the command runs, the input and the approval wait."""

    clients: tuple[Client, Client]
    works: tuple[Watcher, Watcher]
    """Of the conversation with the command, as each client sees it."""
    asks: tuple[Watcher, Watcher]
    working: RemoteConversation
    processes: tuple[int, ...]
    """The command, and all that it has started."""
    began: Path
    """Has a line for each time that the command has begun."""


@dataclass(frozen=True)
class Killed:
    resumed_s: float
    """From the kill to the moment that both clients knew both conversations again."""
    dead_s: float
    """To the end of the last process that the server had started."""


@asynccontextmanager
async def everything_goes_on(root: Path) -> AsyncGenerator[Stage]:
    """Leave no server behind, whichever it is in the end."""
    data, began = root / "data", root / "began"
    mark = f"3600.{time.monotonic_ns()}"  # so long sleeps nobody else
    command = f"sleep {mark} & setsid sleep {mark} & (sleep {mark} &); echo x >> began; wait"
    async with AsyncExitStack() as stack:
        clients = (
            await stack.enter_async_context(connect(data)),
            await stack.enter_async_context(connect(data)),
        )
        stack.callback(_kill_server, clients[0])
        working = await _conversation(clients[0], root, "works", command, mode="full")
        asking = await _conversation(clients[0], root, "asks", "true", mode="ask")
        works, asks = [
            (await _watch(stack, clients[0], talk.id), await _watch(stack, clients[1], talk.id))
            for talk in (working, asking)
        ]
        await working.send("go")
        await asking.send("go")
        await working.send(LATER)
        for one in works:
            await one.until(lambda one: bool(one.session.queue) and _calls(one, "running"))
        for one in asks:
            await one.until(lambda one: [x.state for x in one.items(Approval)] == ["pending"])
        processes: tuple[int, ...] = ()
        with trio.fail_after(60):
            # Then all have been forked; one that is just executing shows no words.
            while not began.exists() or len(processes) < 4:  # the shell, and three that sleep
                await wait_all_tasks_blocked(0.01)
                processes = _marked(mark.encode())
        yield Stage(clients, works, asks, working, processes, began)


async def kill(stage: Stage) -> Killed:
    """Kill the server; return when its processes are dead and the clients know all again."""
    handles = [os.pidfd_open(pid) for pid in stage.processes]
    dead_s: list[float] = []
    try:
        _kill_server(stage.clients[0])
        began = time.monotonic()

        async def die() -> None:
            with trio.fail_after(DEAD_AFTER_S):
                for handle in handles:
                    await trio.lowlevel.wait_readable(handle)
            dead_s.append(time.monotonic() - began)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(die)
            for watcher in (*stage.works, *stage.asks):
                await watcher.opened_again()
            resumed_s = time.monotonic() - began
    finally:
        for handle in handles:
            os.close(handle)
    return Killed(resumed_s, dead_s[0])


async def check(stage: Stage) -> None:
    """Both clients see the same, and all of it is settled."""
    for one, other in (stage.works, stage.asks):
        await one.level_with(other)
        assert encode(one.whole) == encode(other.whole)
        assert one.session.turn is not None
        assert (one.session.turn.state, one.session.turn.interrupted_by) == ("interrupted", "crash")
        assert one.session.live == ()
        assert one.session.waits == ()
    works, asks = stage.works[0], stage.asks[0]
    assert [call.state for call in works.items(ToolCall)] == ["unknown"]
    assert [waiting.state for waiting in works.session.queue] == ["held"]
    assert LATER in encode(works.session.queue).decode()
    assert [approval.state for approval in asks.items(Approval)] == ["expired"]
    assert [call.state for call in asks.items(ToolCall)] == ["cancelled"]
    assert {works.whole.conversation.status, asks.whole.conversation.status} == {"idle"}


async def go_on(stage: Stage) -> None:
    """Let the input that waited have its turn: the call is not run again."""
    await stage.working.resume()
    for one in stage.works:
        await one.until(lambda one: _state(one) == "completed")
        assert one.session.queue == ()
    assert stage.began.read_text().split() == ["x"]


async def _conversation(
    client: Client, root: Path, name: str, command: str, *, mode: Mode
) -> RemoteConversation:
    call = {"tool": "exec_command", "arguments": {"command": command}}
    script = root / f"{name}.yaml"
    script.write_text(json.dumps({"steps": [{"call": [call]}, {"say": "I am back."}]}))
    settings = Settings(model=f"scripted:{script}", mode=mode)
    return await client.create_conversation(directory=str(root), settings=settings)


async def _watch(stack: AsyncExitStack, client: Client, conversation_id: str) -> Watcher:
    reader = client.conversation(conversation_id).subscribe()
    return Watcher(await stack.enter_async_context(reader))


def _calls(one: Watcher, state: str) -> bool:
    return [call.state for call in one.items(ToolCall)] == [state]


def _state(one: Watcher) -> str:
    return "" if one.session.turn is None else one.session.turn.state


def _marked(mark: bytes) -> tuple[int, ...]:
    """Return the processes with a mark in their words."""
    found: list[int] = []
    for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))):
        with suppress(OSError):
            if mark in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return tuple(found)


def _kill_server(client: Client) -> None:
    with suppress(ProcessLookupError):
        os.kill(client.server.pid, signal.SIGKILL)
