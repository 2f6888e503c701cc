"""`vaala run` killed with SIGKILL at a moment between its appends; and what must hold then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trio

import vaala
from tests.simulation.audit import Stream, read_streams
from tests.vaala.dao.crashing import rows_of
from vaala.dao.index_db import NAMESPACES
from vaala.dao.opening import open_store
from vaala.models.base import ModelEvent, ModelRequest
from vaala.testing.function_model import FunctionModel, answer
from vaala_protocol.base import decode
from vaala_storage.file import open_file_log
from vaala_storage.sqlite import open_sqlite

ROUNDS = 12
TOOLS = 3
MARK = "VAALA_TEST_KILL"
DEAD_AFTER_S = 2.0
FIRST_APPEND_S_MAX = 60.0

_CALL = (
    "{tool: exec_command, as: NAME, arguments: "
    '{command: "echo {{ round }}-NAME >> tokens; sleep 0.0NUMBER"}}'
)


def script() -> str:
    """Return a script whose every call appends a token of its own to a file."""
    calls = [_CALL.replace("NAME", "abc"[n]).replace("NUMBER", str(n)) for n in range(TOOLS)]
    steps = "\n".join(f"          - {call}" for call in calls)
    return (
        f"steps:\n  - repeat: {ROUNDS}\n    steps:\n      - say: round\n        call:\n{steps}\n"
        "  - say: done\n"
    )


class Place:
    """A directory with the data of one run, where it works, and what it is told."""

    def __init__(self, directory: Path, number: int) -> None:
        self.mark = f"{os.getpid()}.{number}"
        self.data = directory / "data"
        self.work = directory / "work"
        self.work.mkdir(parents=True)
        (directory / "script.yaml").write_text(script())
        self._model = f"scripted:{directory / 'script.yaml'}"

    def start(self) -> subprocess.Popen[bytes]:
        words = [
            "run",
            "--in-process",
            "--model",
            self._model,
            "--mode",
            "full",
            "--data-dir",
            str(self.data),
        ]
        return subprocess.Popen(
            [sys.executable, "-m", "vaala", *words, "--cwd", str(self.work), "go"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, MARK: self.mark}, start_new_session=True,
        )  # fmt: skip

    def log(self) -> Path | None:
        """Return the log of the run, once it is there."""
        return next(iter(self.data.glob("conversations/*/main.jsonl")), None)

    def await_log(self, process: subprocess.Popen[bytes]) -> Path:
        """Wait for the first append."""
        until = time.monotonic() + FIRST_APPEND_S_MAX
        while (log := self.log()) is None:
            assert time.monotonic() < until, "the run has not written anything"
            assert not _ends(process, 0.001), "the run ended before it had written anything"
        return log

    def tokens(self) -> Counter[str]:
        file = self.work / "tokens"
        return Counter(file.read_text().split() if file.exists() else [])

    def alive(self) -> list[int]:
        """Return the processes that the run has left, itself included."""
        wanted = f"{MARK}={self.mark}".encode()
        return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc")))
                if wanted in _environment(pid)]  # fmt: skip


def _environment(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _ends(process: subprocess.Popen[bytes], within_s: float) -> bool:
    """Wait for so long at most; tell whether the process has ended."""
    try:
        process.wait(within_s)
    except subprocess.TimeoutExpired:
        return False
    return True


def measure(place: Place) -> float:
    """Return the seconds between the first and the last append of a run that is left alone."""
    process = place.start()
    log = place.await_log(process)
    began = time.time()
    assert process.wait(120) == 0, "a run that is left alone must end well"
    assert sum(place.tokens().values()) == ROUNDS * TOOLS
    return log.stat().st_mtime - began


@dataclass(frozen=True)
class Killed:
    """What a kill has found; all checks have passed."""

    entries: int
    done: int
    in_flight: int
    finished: bool
    """The run had come to its end before the kill."""


def kill(place: Place, after_s: float) -> Killed:
    """Start a run, kill it so long after its first append, and check what is left."""
    process = place.start()
    place.await_log(process)
    _ends(process, after_s)
    process.send_signal(signal.SIGKILL)
    finished = process.wait(10) != -signal.SIGKILL
    killed_at = time.monotonic()
    before = trio.run(read_log, place)
    threading.Event().wait(killed_at + DEAD_AFTER_S - time.monotonic())
    assert not place.alive(), f"alive {DEAD_AFTER_S} s after the kill: {place.alive()}"
    tokens = place.tokens()
    trio.run(go_on, place)
    after = trio.run(read_log, place)
    assert place.tokens() == tokens, "going on has run a call again"
    return _check(before, after, tokens, finished=finished)


async def read_log(place: Place) -> Stream:
    async with open_file_log(place.data / "conversations", read_only=True) as log:
        (sessions,) = (await read_streams(log)).values()
    return sessions[0]


async def go_on(place: Place) -> None:
    """Open what is left and prompt it: the request passes the strict validator."""

    async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        for event in answer("I go on."):
            yield event

    model = FunctionModel(respond)
    async with open_store(place.data) as store, vaala.open_runtime(
        storage=store, models=model
    ) as runtime:  # fmt: skip
        (row,) = (await store.list()).rows
        conversation = await runtime.open_conversation(row.id)
        result = await conversation.run("follow up", settings=vaala.Settings(model=model.name))
        assert (result.turn.state, result.text) == ("completed", "I go on."), result
    assert not model.refused
    before = await _rows(place)
    async with open_store(place.data) as store:
        await store.reindex()
    assert before == await _rows(place), "the index differs from a reindex"


async def _rows(place: Place) -> dict[str, Any]:
    opening = open_sqlite(place.data / "metadata.db", namespaces=NAMESPACES, read_only=True)
    async with opening as database:
        return await rows_of(database.records)


def _check(before: Stream, after: Stream, tokens: Counter[str], *, finished: bool) -> Killed:
    assert all(count == 1 for count in tokens.values()), f"a token twice: {tokens}"
    states: Counter[str] = Counter()
    known: set[str] = set()
    for call in after.items.values():
        if call["kind"] != "tool_call":
            continue
        token = str(decode(call["arguments"].encode())["command"]).split()[1]
        was, now = before.items[call["id"]]["state"], call["state"]
        known.add(token)
        states[now] += 1
        assert now == "done" or (was, now) == ("running", "unknown"), f"{was} became {now}: {call}"
        assert now != "done" or token in tokens, f"{token} is done and is not there"
    assert tokens.keys() <= known, f"ran and is not in the log: {tokens.keys() - known}"
    after.check(Counter())
    after.check_settled()
    return Killed(len(before.entries), states["done"], states["unknown"], finished)
