"""What a turn costs in CPU beside the bytes that it must send.

    python bench/turns.py                     every section
    python bench/turns.py tool --rounds 200   one tool round: read_file of 1 KB
    python bench/turns.py length              a turn after 10, 100, 1,000 and 10,000 items
    python bench/turns.py deltas              2,000, 10,000 and 100,000 deltas of one answer

The model is a chat-completions server in a process of its own on loopback, so that the CPU time of
this process is the runtime's. Raw is an httpx POST of the same body, its answer read and dropped;
what is printed is ours, raw, and the difference, in milliseconds of CPU per turn or round. Deltas
stand beside the same answer read by httpx-sse, each event by json.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import trio
from httpx_sse import aconnect_sse

import vaala
from vaala.dao.entries import item_entry, turn_entry
from vaala.dao.opening import open_store
from vaala.dao.store import Store
from vaala.models.provider import Provider
from vaala.models.set import open_models
from vaala.testing.provider import Reply, Request, chat_server
from vaala.testing.provider_chat import call, text, tool_calls
from vaala_protocol.content import TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, Location, SessionInfo, TurnInfo

WORDS = "A line of a message as people and models write them, neither long nor short. "


@dataclass(slots=True)
class Script:
    """Answers by what is asked: a tool round, a number of deltas, or a few words."""

    body_bytes: int = 0
    """The length of the last request for anything but this length."""

    def answer(self, request: Request) -> Reply:
        last = request.json["messages"][-1]
        asked = str(last.get("content"))
        if asked == "length":
            return text(str(self.body_bytes))
        self.body_bytes = len(request.body)
        return reply_to(last, asked)


def reply_to(last: dict[str, Any], asked: str) -> Reply:
    if last["role"] == "user" and asked.startswith("read"):
        return tool_calls(call("read_file", path="file.txt"))
    if last["role"] == "user" and asked.startswith("deltas "):
        return text(*["word "] * int(asked.split()[1]))
    return text("It ", "is ", "done.")


async def serve() -> None:
    async with chat_server() as server:
        server.answer(Script().answer)
        print(server.base_url, flush=True)
        while True:
            await trio.sleep(5)
            server.requests.clear()


@asynccontextmanager
async def server_process() -> AsyncGenerator[str]:
    command = [sys.executable, __file__, "serve"]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.receive_some()).decode().strip()
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def runtime_on(url: str, root: Path) -> AsyncGenerator[tuple[vaala.Runtime, Store]]:
    provider = Provider("mock", url, models=("mock",))
    async with (
        open_models([provider], {}) as models,
        open_store(root / "data") as store,
        vaala.open_runtime(models=models, storage=store) as runtime,
    ):
        yield runtime, store


async def cpu_ms(rounds: int, work: Callable[[], Awaitable[object]]) -> float:
    begun = time.process_time()
    for _ in range(rounds):
        await work()
    return (time.process_time() - begun) * 1000 / rounds


async def raw_events(client: httpx.AsyncClient, url: str, body: bytes) -> None:
    """Read the events of an answer as a client without anything around it does."""
    headers = {"content-type": "application/json"}
    events = aconnect_sse(client, "POST", f"{url}/chat/completions", content=body, headers=headers)
    async with events as source:
        async for event in source.aiter_sse():
            if event.data != "[DONE]":
                json.loads(event.data)


async def raw_post(client: httpx.AsyncClient, url: str, body: bytes) -> None:
    headers = {"content-type": "application/json"}
    async with client.stream(
        "POST", f"{url}/chat/completions", content=body, headers=headers
    ) as got:
        async for _ in got.aiter_bytes():
            pass


def small_request(asked: str, more: str = "") -> bytes:
    messages = [{"role": "user", "content": asked}]
    return json.dumps({"model": "mock", "messages": messages, "stream": True, "pad": more}).encode()


async def same_bytes(client: httpx.AsyncClient, url: str) -> bytes:
    """Return a request as long as the last one that the server was sent."""
    got = await client.post(f"{url}/chat/completions", content=small_request("length"))
    length = int(re.findall(r'"content": ?"([0-9]+)"', got.text)[0])
    return small_request("hello", "x" * (length - len(small_request("hello"))))


async def tool_section(url: str, root: Path, rounds: int) -> None:
    """Take turns in new conversations, so that history does not grow, and print the medians."""
    (root / "file.txt").write_text("x" * 63 + "\n" + WORDS * 12)
    settings = Settings(mode="full", model="mock/mock")
    each: list[tuple[float, float, float]] = []
    async with runtime_on(url, root) as (runtime, _), httpx.AsyncClient() as client:
        for _ in range(rounds):
            talk = await runtime.create_conversation(directory=str(root), settings=settings)
            await talk.run("read")
            plain = await cpu_ms(5, partial(talk.run, "hello"))
            with_tool = await cpu_ms(5, partial(talk.run, "read"))
            body = await same_bytes(client, url)
            raw = await cpu_ms(5, partial(raw_post, client, url, body))
            each.append((plain, with_tool - plain, raw))
    plain, round_of_tool, raw = (statistics.median(column) for column in zip(*each, strict=True))
    beside = statistics.median(one - two for _, one, two in each)
    print(f"short turn       {plain:6.2f} ms")
    print(f"one tool round   {round_of_tool:6.2f} ms")
    print(f"raw POST         {raw:6.2f} ms   ({len(body)} bytes)")
    print(f"round beside raw {beside:6.2f} ms   medians of {rounds}")


async def seeded(store: Store, directory: Path, items: int) -> str:
    """Write a conversation with ``items`` items and return its id."""
    info = ConversationInfo(
        id=new_id(), created_at=1, updated_at=1,
        locations=(Location(executor="local", directory=str(directory)),),
    )  # fmt: skip
    settings = Settings(mode="full", model="mock/mock")
    root = SessionInfo(id=info.id, agent="default", created_at=1, settings=settings)
    log = await store.create(info, root)
    session = await log.open_session(info.id)
    entries = []
    for number in range(items // 2):
        turn = TurnInfo(id=new_id(), state="running", started_at=1, settings=settings, instance="")
        said = UserMessage(
            id=new_id(), at=2 * number + 1, turn_id=turn.id, step=1, created_at=1, completed_at=1,
            content=(TextContent(text=WORDS),),
        )  # fmt: skip
        replied = AssistantMessage(
            id=new_id(), at=2 * number + 2, turn_id=turn.id, step=1, created_at=1, completed_at=1,
            text=WORDS * 2,
        )  # fmt: skip
        done = TurnInfo(
            id=turn.id, state="completed", stop_reason="end_turn", started_at=1, ended_at=2,
            settings=settings, instance="", steps=1,
        )  # fmt: skip
        entries += [
            turn_entry(turn), item_entry(said), item_entry(replied), turn_entry(done, turn),
        ]  # fmt: skip
        if len(entries) > 500:
            await session.append(entries)
            entries = []
    await session.append(entries)
    await log.close()
    return info.id


async def length_section(url: str, root: Path, rounds: int) -> None:
    print("items    ours ms   raw ms   beside raw   body bytes")
    first = 0.0
    for items in (10, 100, 1_000, 10_000):
        place = root / str(items)
        place.mkdir()
        async with runtime_on(url, place) as (runtime, store), httpx.AsyncClient() as client:
            talk = await runtime.open_conversation(await seeded(store, root, items))
            await talk.run("hello")
            await talk.run("hello")
            session = await (await runtime.conversation(talk.id)).root()
            assert session.history is not None
            history, _ = session.history.request(())
            body = b'{"model":"mock","stream":true,"messages":[' + history + b"]}"
            ours = raw = 0.0
            for _ in range(rounds):
                ours += await cpu_ms(5, partial(talk.run, "hello")) / rounds
                raw += await cpu_ms(5, partial(raw_post, client, url, body)) / rounds
        first = first or ours - raw
        print(f"{items:6} {ours:9.2f} {raw:8.2f} {ours - raw:12.2f} {len(body):12}"
              f"   {(ours - raw) / first:5.2f} x that at 10")  # fmt: skip


async def deltas_section(url: str, root: Path, rounds: int) -> None:
    settings = Settings(mode="full", model="mock/mock")
    async with runtime_on(url, root) as (runtime, _), httpx.AsyncClient(timeout=60) as client:
        for count in (2_000, 10_000, 100_000):
            talk = await runtime.create_conversation(directory=str(root), settings=settings)
            async with talk.subscribe() as updates:
                times = 1 if count > 10_000 else rounds
                ours = await cpu_ms(times, partial(talk.run, f"deltas {count}"))
                seen = 0
                while updates.next_nowait() is not None:
                    seen += 1
            body = b'{"model":"mock","messages":[{"role":"user","content":"deltas %d"}]}' % count
            raw = await cpu_ms(times, partial(raw_events, client, url, body))
            print(
                f"{count:7} deltas: ours {ours:8.1f} ms, {ours * 1000 / count:5.1f} us each; "
                f"httpx-sse and json {raw:7.1f} ms: {ours / raw:.2f} x; {seen} updates left"
            )


SECTIONS = {"tool": tool_section, "length": length_section, "deltas": deltas_section}


async def measure(names: list[str], rounds: int) -> None:
    async with server_process() as url:
        for name in names or SECTIONS:
            with tempfile.TemporaryDirectory() as root:
                print(f"\n{name} ({os.cpu_count()} processors)")
                await SECTIONS[name](url, Path(root), rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of turns beside the bytes they send")
    parser.add_argument("sections", nargs="*", metavar="SECTION")
    parser.add_argument("--rounds", type=int, default=20)
    args = parser.parse_args()
    if args.sections == ["serve"]:
        trio.run(serve)
    else:
        trio.run(measure, args.sections, args.rounds)


if __name__ == "__main__":
    main()
