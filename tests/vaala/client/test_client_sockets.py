"""Real sockets that break: a viewer ends with the same state, without gap or repeat."""

from __future__ import annotations

import random

import trio

from tests.vaala.client.meeting import client_of, door_of
from tests.vaala.server.api.serving import server
from vaala.client import Client
from vaala.models.scripted import ScriptedModel
from vaala.testing import DroppingProxy
from vaala.testing.projection import Projection
from vaala_protocol.state import Snapshot

DELTAS = 400
DROPS = 50
THE_END = "the end"


def _talker() -> ScriptedModel:
    words = "".join(f"{number:5} of it" for number in range(DELTAS))
    return ScriptedModel({"steps": [{"say": words, "chunk": 11, "pace_s": 0.0005}]})


class Viewer:
    """Watches a conversation until it is called `THE_END`; what is missing raises `Gap`."""

    def __init__(self, client: Client, conversation_id: str) -> None:
        self.projection = Projection()
        self.snapshots = 0
        self.frames: list[int] = []
        self._news = trio.Event()
        self._client = client
        self._id = conversation_id

    async def watch(self, *, task_status: trio.TaskStatus[None]) -> None:
        async with self._client.conversation(self._id).subscribe() as updates:
            task_status.started()
            async for update in updates:
                self.projection.apply(update)
                if isinstance(update, Snapshot):
                    self.snapshots += 1
                else:
                    self.frames += range(update.first, update.seq + 1)
                    self._news.set()
                if self.projection.state.conversation.title == THE_END:
                    return

    async def next_frame(self) -> None:
        self._news = trio.Event()
        await self._news.wait()


async def test_a_viewer_whose_socket_drops_at_random_misses_and_repeats_nothing() -> None:
    # H1-1: at 50 random moments, most of them in the middle of a message
    chance = random.Random(3)
    async with (
        server(_talker()) as srv,
        door_of(srv) as door,
        # `run` subscribes, too: beside another reader of its client that can mean a snapshot.
        client_of(door.direct()) as driver,
        client_of(door.direct()) as watching,
        client_of(door.through_proxy()) as dropped,
    ):
        talk = await driver.create_conversation(directory="/w")
        steady, shaky = Viewer(watching, talk.id), Viewer(dropped, talk.id)
        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                await nursery.start(steady.watch)
                await nursery.start(shaky.watch)
                nursery.start_soon(_keep_dropping, door.proxy, shaky, chance)
                while door.proxy.connections <= DROPS:
                    await talk.run("go")
                await talk.update(title=THE_END)
        assert shaky.projection.state == steady.projection.state
        assert (steady.snapshots, shaky.snapshots) == (1, 1)
        for viewer in (steady, shaky):
            assert viewer.frames == list(range(viewer.frames[0], steady.frames[-1] + 1))


async def _keep_dropping(proxy: DroppingProxy, viewer: Viewer, chance: random.Random) -> None:
    """Cut each connection at some byte behind the first frame that came over it."""
    while proxy.connections <= DROPS:
        await viewer.next_frame()
        proxy.drop_after(chance.randrange(2_000))
        await proxy.wait_connections(proxy.connections + 1)
