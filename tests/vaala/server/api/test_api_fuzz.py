"""Random and mutated messages: answered or ignored, and nobody else is disturbed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random
from typing import Any

import trio

from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import is_turn, machine, server, settled
from vaala_protocol.methods import REQUESTS

HELLO = (
    b'{"jsonrpc":"2.0","id":0,"method":"runtime/initialize",'
    b'"params":{"client":{"name":"fuzz","version":"1"}}}'
)
VALUES: tuple[Any, ...] = (
    None, 0, -1, 1e308, 2**70, "", "x", "\ud800", "../../etc", [], {}, [[]], True, "1.0",
    {"type": "text", "text": "hi"}, ["local"], "local", "/w", {"epoch": "e", "seq": 3},
)  # fmt: skip
NOT_SENT = {
    "runtime/shutdown", "conversation/export", "conversation/import",
    "conversation/create", "conversation/fork",
}  # fmt: skip
"""They end the server, touch files of this machine, or leave conversations open."""


def messages(random: Random, conversation_id: str, count: int) -> Iterator[bytes]:
    names = [kind for kind in REQUESTS if kind.method not in NOT_SENT]
    for number in range(count):
        kind = random.choice(names)
        params = {
            name: random.choice(VALUES)
            for name in random.sample(
                ["conversationId", "sessionId", "text", "content", "limit", "after", "query",
                 "name", "file", "key", "value", "clientId", "option", "tools", "offset"],
                random.randrange(6),
            )
        }  # fmt: skip
        if random.random() < 0.5:
            params["conversationId"] = conversation_id
        whole = json.dumps(
            {"jsonrpc": "2.0", "id": random.choice([number, f"{number}", None]),
             "method": kind.method, "params": params}
        ).encode()  # fmt: skip
        match random.randrange(4):
            case 0:
                yield whole
            case 1:
                at = random.randrange(len(whole))
                yield whole[:at] + bytes([random.randrange(256)]) + whole[at + 1 :]
            case 2:
                yield whole[: random.randrange(len(whole))]
            case _:
                yield b"[" + b",".join([whole] * random.randrange(4)) + b"]"


def test_no_message_upsets_the_server() -> None:
    async def story(random: Random) -> None:
        async with (
            server(script({"say": "ok"}), executors=machine()) as served,
            served.client("calm") as calm,
        ):
            talk = await calm.create()
            await calm.watch(talk)
            await calm.send(talk, "go")
            await calm.hear(is_turn("completed"))
            other = await calm.create()
            await settled()
            before = trio.lowlevel.current_statistics().tasks_living

            async with served.wire() as wire, trio.open_nursery() as nursery:

                async def drain() -> None:
                    while True:
                        await wire.receive()

                nursery.start_soon(drain)
                await wire.send(HELLO)
                for message in messages(random, other, 1_500):
                    await wire.send(message)
                await settled()
                nursery.cancel_scope.cancel()
            calm.heard.clear()
            await calm.send(talk, "still there?")
            await calm.hear(is_turn("completed"))
            await settled()
            after = trio.lowlevel.current_statistics().tasks_living
            assert after <= before
            assert len(served.api.clients) == 1

    run_seeds(story, 4)
