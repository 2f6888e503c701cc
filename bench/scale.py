"""What many conversations cost in one process.

    python bench/scale.py                           both sections
    python bench/scale.py idle --count 10000        idle conversations, opened from disk
    python bench/scale.py busy --count 1000         sessions running scripted turns at once

Memory is the resident set of this process (VmRSS), descriptors are those in /proc/self/fd.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import tempfile
import time
from pathlib import Path

import trio

import vaala
from vaala.dao.opening import open_store
from vaala.models.scripted import ScriptedModel
from vaala.runtime import Runtime
from vaala_protocol.settings import Settings

FULL = Settings(mode="full")


def resident_kb() -> int:
    gc.collect()
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def make(runtime: Runtime, root: Path, count: int) -> list[str]:
    """Make conversations with one short turn each, a hundred at a time, and close them."""
    ids: list[str] = []

    async def one() -> None:
        talk = await runtime.create_conversation(directory=str(root), settings=FULL)
        await talk.run("hello")
        ids.append(talk.id)

    while len(ids) < count:
        async with trio.open_nursery() as nursery:
            for _ in range(min(100, count - len(ids))):
                nursery.start_soon(one)
    return ids


def hello() -> ScriptedModel:
    return ScriptedModel({"steps": [{"say": "Hello. What can I do?"}]})


async def prepare(root: Path, count: int) -> None:
    async with (
        open_store(root / "data") as store,
        vaala.open_runtime(models=hello(), storage=store) as runtime,
    ):
        for conversation_id in await make(runtime, root, count):
            print(conversation_id)


async def idle(root: Path, count: int) -> None:
    """Make them in another process, so that this one's memory is that of the open ones."""
    command = [sys.executable, __file__, "prepare", "--count", str(count), "--dir", str(root)]
    made = await trio.run_process(command, capture_stdout=True)
    ids = made.stdout.decode().split()
    model = hello()
    async with (
        open_store(root / "data") as store,
        vaala.open_runtime(models=model, storage=store) as runtime,
    ):
        warm = await runtime.open_conversation(ids[0])
        await warm.run("hello")
        before, files = resident_kb(), descriptors()
        begun = time.perf_counter()
        for conversation_id in ids[1:]:
            await runtime.open_conversation(conversation_id)
        took = time.perf_counter() - begun
        grown = resident_kb() - before
        print(f"{len(ids) - 1} idle conversations: {grown / (len(ids) - 1):.1f} KB each, "
              f"{took * 1000 / len(ids):.2f} ms to open each")  # fmt: skip
        print(f"descriptors: {files} before, {descriptors()} after")
        begun = time.perf_counter()
    print(f"closed in {time.perf_counter() - begun:.1f} s")


async def busy(root: Path, count: int) -> None:
    call = {"tool": "list_dir", "arguments": {"path": "."}}
    model = ScriptedModel(
        {"steps": [{"say": "Looking.", "call": [call, call]}, {"say": "Done.", "pace_s": 0.001}]}
    )
    async with (
        open_store(root / "data") as store,
        vaala.open_runtime(models=model, storage=store) as runtime,
    ):
        talks = [
            await runtime.create_conversation(directory=str(root), settings=FULL)
            for _ in range(count)
        ]
        before, states, peak = resident_kb(), [], 0

        async def run(talk: vaala.ConversationHandle) -> None:
            nonlocal peak
            result = await talk.run("go")
            states.append(result.turn.state)
            if len(states) % 100 == 1:
                peak = max(peak, resident_kb())

        begun = time.perf_counter()
        async with trio.open_nursery() as nursery:
            for talk in talks:
                nursery.start_soon(run, talk)
        took = time.perf_counter() - begun
        print(f"{count} sessions at once, two tool calls each: {states.count('completed')} "
              f"completed in {took:.1f} s ({took * 1000 / count:.1f} ms each)")  # fmt: skip
        print(f"memory: {(peak - before) / count:.0f} KB more for each at the peak, "
              f"descriptors {descriptors()}")  # fmt: skip


def main() -> None:
    sections = {"idle": (idle, 10_000), "busy": (busy, 1_000), "prepare": (prepare, 100)}
    parser = argparse.ArgumentParser(description="Memory and time of many conversations")
    parser.add_argument("sections", nargs="*", metavar="SECTION", help="idle, busy")
    parser.add_argument("--count", type=int)
    parser.add_argument("--dir", type=Path, help="where prepare writes")
    args = parser.parse_args()
    for name in args.sections or ["idle", "busy"]:
        work, count = sections[name]
        with tempfile.TemporaryDirectory() as root:
            trio.run(work, args.dir or Path(root), args.count or count)


if __name__ == "__main__":
    main()
