"""What the wire costs: scripted turns through a server's WebSocket beside the same in process.

    python bench/wire.py --turns 200 --runs 5

Each run is a process of its own, in turns: one with the runtime inside, one with `vaala.client` and
a server (both processes counted). Both keep the log on disk and watch the conversation while it
runs: a `read_file` and an answer in 50 pieces. CPU is user and system time, from the first turn
after ten that are not counted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import trio

from vaala import Settings, open_runtime, open_store
from vaala.client import connect
from vaala.interface import Conversation, Conversations
from vaala.models.scripted import ScriptedModel

WARM = 10
TICK = os.sysconf("SC_CLK_TCK")
SCRIPT = {
    "chunk": 16,
    "steps": [
        {"call": [{"tool": "read_file", "arguments": {"path": "note.txt"}, "as": "note"}]},
        {"say": "word " * 160},
    ],
}


async def turns(conversations: Conversations, model: str, server: int | None, count: int) -> float:
    """Return the CPU seconds of a turn: ours, and those of the server's process."""
    conversation = await conversations.create_conversation(
        directory=os.getcwd(), settings=Settings(model=model, mode="full")
    )
    began = 0.0
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, conversation)
        for number in range(WARM + count):
            if number == WARM:
                began = time.process_time() + cpu_of(server)
            result = await conversation.run(f"prompt {number}")
            assert result.turn.state == "completed", result
        spent = time.process_time() + cpu_of(server) - began
        nursery.cancel_scope.cancel()
    return spent / count


async def watch(conversation: Conversation) -> None:
    async with conversation.subscribe() as updates:
        async for _ in updates:
            pass


def cpu_of(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


async def local(folder: Path, count: int) -> float:
    async with (
        open_store(folder / "data") as store,
        open_runtime(storage=store, models=(model := ScriptedModel(SCRIPT))) as runtime,
    ):
        return await turns(runtime, model.name, None, count)


async def remote(folder: Path, count: int) -> float:
    async with connect(folder / "data") as client:
        try:
            return await turns(client, f"scripted:{folder}/script.yaml", client.server.pid, count)
        finally:
            await client.shutdown()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", default="all", choices=("all", "local", "remote"))
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--runs", type=int, default=5)
    given = parser.parse_args()
    if given.role != "all":
        role = local if given.role == "local" else remote
        print(trio.run(role, Path.cwd(), given.turns))
        return
    taken: dict[str, list[float]] = {"local": [], "remote": []}
    for _ in range(given.runs):
        for role_name, figures in taken.items():
            figures.append(run(role_name, given.turns))
    one, other = (statistics.median(figures) * 1000 for figures in taken.values())
    ratio = statistics.median(b / a for a, b in zip(*taken.values(), strict=True))
    print(f"in process {one:.2f} ms CPU a turn, through the wire {other:.2f} ms: {ratio:.2f} x")


def run(role: str, count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "script.yaml").write_text(json.dumps(SCRIPT))
        Path(folder, "note.txt").write_text("a line\n" * 100)
        environ = {**os.environ, "XDG_CONFIG_HOME": folder, "HOME": folder}
        command = [sys.executable, os.path.abspath(__file__), role, "--turns", str(count)]
        done = subprocess.run(
            command, cwd=folder, env=environ, stdout=subprocess.PIPE, check=True, text=True
        )
        return float(done.stdout)


if __name__ == "__main__":
    main()
