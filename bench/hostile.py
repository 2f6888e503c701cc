"""Hostile clients at a real server: what an honest one notices of them, and what they leave.

    python bench/hostile.py                  100,000 frames, a storm of 500 connections a second
    python bench/hostile.py --scale 0.05     the same with a twentieth of everything

Processes: a model server that writes the time of sending into each delta, ``vaala serve`` with its
data on disk, two attackers (``bench/attacks.py``, plain sockets), and this one: an honest client
that watches a turn of 50 deltas a second, and visitors, each of which connects, greets and asks for
the status. It fails when anybody was refused or lost anything, or when anything is left over.

Latency runs from the model server's write to the moment that the watcher has read the delta. The
server counts its tasks and objects when it gets SIGUSR1, after a collection of garbage.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import trio

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from bench.fanout import STAMP, Peer, peer, start  # noqa: E402 # the path comes first
from bench.serving import Server, serve  # noqa: E402
from vaala.cli.program import main as vaala  # noqa: E402
from vaala_protocol.ids import new_id  # noqa: E402

RATE = 50
SACRIFICED = 32
"""Conversations that random messages may do anything to."""
SETTLED_S = 5.0
"""For what attackers have left to end: a connection is lingered on for a second at most."""


@dataclass
class Phase:
    name: str
    latencies_ms: list[float] = field(default_factory=list)
    visits_ms: list[float] = field(default_factory=list)
    began: float = 0.0
    cpu_s: float = 0.0

    def show(self) -> str:
        took = time.monotonic() - self.began
        visits = f"visits p50 {share(self.visits_ms, 0.5):.0f}, max {share(self.visits_ms, 1):.0f}"
        most = share(self.latencies_ms, 1)
        return (f"{self.name}: {took:.0f} s, server {100 * self.cpu_s / took:.0f} % CPU; "
                f"{len(self.latencies_ms)} deltas, p50 {share(self.latencies_ms, 0.5):.1f}, "
                f"p99 {share(self.latencies_ms, 0.99):.1f}, "
                f"max {most:.1f} ms; {len(self.visits_ms)} {visits} ms")  # fmt: skip


def share(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] if values else 0.0


class Bench:
    def __init__(self, server: Server, given: Namespace) -> None:
        self.server = server
        self.given = given
        self.where = Namespace(port=server.port, token=server.token)
        self.phase = Phase("start")
        self.resyncs = 0
        self.failed_visits = 0
        self.conversations: list[str] = []

    async def run(self) -> None:
        async with peer(self.where) as honest, trio.open_nursery() as nursery:
            made = [await self._create(honest) for _ in range(SACRIFICED + 1)]
            mine, self.conversations = made[0], made[1:]
            await honest.ask("conversation/subscribe", conversationId=mine)
            await self._say(honest, mine)
            nursery.start_soon(self._watch, honest)
            nursery.start_soon(self._visit_again_and_again)
            await self._attack_all()
            nursery.cancel_scope.cancel()

    async def _create(self, honest: Peer) -> str:
        created = await honest.ask("conversation/create", directory="/tmp")
        return str(created["id"])

    async def _say(self, honest: Peer, conversation: str) -> None:
        await honest.ask(
            "session/send", conversationId=conversation, clientId=new_id(),
            content=[{"type": "text", "text": "go"}],
        )  # fmt: skip

    async def _attack_all(self) -> None:
        scale, quiet_s = self.given.scale, 10 * max(0.2, self.given.scale)
        half = ["--count", str(int(50_000 * scale) // 2)]
        async with self._during("warm up"):
            await self._attack(["frames", "--count", "500"], ["storm", "--rate", "50",
                               "--seconds", "2"])  # fmt: skip
            await self._attack(["junk", "--seconds", "1"], ["held", "--count", "20",
                               "--seconds", "2"])  # fmt: skip
        before = await self._left("before")
        async with self._during("quiet"):
            await trio.sleep(quiet_s)
        async with self._during("busy machine, no attack"):
            spin = ["spin", "--seconds", str(quiet_s)]
            await self._attack(spin, spin)
        for number in (1, 2):
            async with self._during(f"frames {number}"):
                await self._attack(["frames", *half, "--seed", f"{number}1"],
                                   ["frames", *half, "--seed", f"{number}2"])  # fmt: skip
            await self._left(f"after frames {number}")
        async with self._during("held and junk"):
            seconds = ["--seconds", str(80 * scale)]
            await self._attack(["held", "--count", str(int(200 * scale)), *seconds],
                               ["junk", *seconds])  # fmt: skip
        await self._left("after held and junk")
        async with self._during("storm"):
            storm = ["storm", "--rate", "250", "--seconds", str(10 * scale)]
            await self._attack(storm, storm)
        after = await self._left("after all")
        async with self._during("quiet again"):
            await trio.sleep(quiet_s)
        more = {name: after[name] - before[name] for name in ("files", "tasks", "clients")}
        print(f"left over: {more}; {self.failed_visits} visits failed; {self.resyncs} resyncs of "
              "the honest client")  # fmt: skip
        assert max(more.values()) <= 0
        assert (self.failed_visits, self.resyncs) == (0, 0)

    @asynccontextmanager
    async def _during(self, name: str) -> AsyncGenerator[None]:
        self.phase = Phase(name, began=time.monotonic())
        cpu_s = self.server.cpu_seconds()
        yield
        self.phase.cpu_s = self.server.cpu_seconds() - cpu_s
        print(self.phase.show(), flush=True)

    async def _attack(self, *attacks: list[str]) -> None:
        """Run attackers side by side, and tell what they did."""
        common = ["--port", str(self.server.port), "--token", self.server.token,
                  "--conversations", ",".join(self.conversations)]  # fmt: skip
        async with trio.open_nursery() as nursery:
            for words in attacks:
                nursery.start_soon(self._attack_once, [*words, *common])

    async def _attack_once(self, words: list[str]) -> None:
        script = str(Path(__file__).with_name("attacks.py"))
        command = [sys.executable, script, *words]
        done = await trio.run_process(command, capture_stdout=True)
        print(f"  {words[0]}: {done.stdout.decode().strip()}", flush=True)

    async def _left(self, when: str) -> dict[str, float]:
        """Return what the server holds now, when what has ended has had its time."""
        self.phase = Phase("settling")
        await trio.sleep(SETTLED_S)
        counted = await self._count()
        async with peer(self.where) as one:
            status = await one.ask("runtime/status")
        found: dict[str, float] = {
            "memory MB": round(self.server.memory_mb(), 1), "files": self.server.open_files(),
            "threads": self.server.threads(), "clients": status["clients"], **counted,
        }  # fmt: skip
        print(f"{when}: {found}", flush=True)
        return found

    async def _count(self) -> dict[str, int]:
        os.kill(self.server.pid, signal.SIGUSR1)
        await trio.sleep(1)
        told = self.server.data.parent / COUNTED
        counted: dict[str, int] = json.loads(told.read_text())
        told.unlink()
        return counted

    async def _watch(self, honest: Peer) -> None:
        while True:
            message = await honest.message()
            now = time.monotonic_ns()
            self.resyncs += b'"conversation/resync"' in message
            if b'"item/delta"' in message:
                ages = [(now - int(stamp)) / 1e6 for stamp in STAMP.findall(message)]
                self.phase.latencies_ms += ages

    async def _visit_again_and_again(self) -> None:
        """Come as somebody new, twice a second."""
        while True:
            phase, began = self.phase, time.monotonic()
            try:
                with trio.fail_after(10):
                    async with peer(self.where) as one:
                        await one.ask("runtime/status")
                phase.visits_ms.append((time.monotonic() - began) * 1000)
            except* (OSError, RuntimeError, trio.TooSlowError) as errors:
                self.failed_visits += 1
                print(f"  a visit failed: {errors.exceptions}", flush=True)
            await trio.sleep(0.5)


COUNTED = "counted.json"


def count_and_serve() -> None:
    """Be `vaala serve`, and tell on SIGUSR1 how many tasks and objects there are."""
    told = Path(os.environ["HOME"]) / COUNTED

    def tell(*_: object) -> None:
        gc.collect()
        counted = {"tasks": trio.lowlevel.current_statistics().tasks_living,
                   "objects": len(gc.get_objects())}  # fmt: skip
        draft = told.with_suffix(".draft")
        draft.write_text(json.dumps(counted))
        draft.rename(told)

    signal.signal(signal.SIGUSR1, tell)
    sys.exit(vaala(sys.argv[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source: subprocess.Popen[Any] = start("model", "--rate", str(RATE), "--seconds", "3600")
        assert source.stdout is not None
        port = source.stdout.readline().strip()
        providers = f"bench:\n  base_url: http://127.0.0.1:{port}/v1\n  models: [bench]\n"
        program = (sys.executable, __file__)
        with serve(Path(folder), {"providers.yaml": providers}, program) as server:
            try:
                trio.run(partial(Bench(server, given).run))
            finally:  # before the server, which hangs up in the middle of its answer
                source.terminate()
                source.wait()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        count_and_serve()
    main()
