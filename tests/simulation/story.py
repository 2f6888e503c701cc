"""A story: one seed is one machine, its runtimes one after the other, and all that happens."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from random import Random

import msgspec
import pytest
import trio
import trio.testing

import vaala
from tests.simulation.audit import Stream, check_final, check_ledger, read_streams
from tests.simulation.brain import WORDS, Brain
from tests.simulation.clients import Client
from tests.simulation.ledger import Ledger
from tests.vaala.core.seeds import schedule
from tests.vaala.dao.crashing import hits_of, rows_of
from vaala.handle import ConversationHandle
from vaala.runtime import Runtime
from vaala.testing.disk import SimulatedDisk
from vaala_protocol.items import Item
from vaala_protocol.state import Snapshot

LIVES_MAX = 4
STORY_HOURS_MAX = 24 * 3600.0
CHECKPOINT_BYTES = 6_000


class Story:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = SimulatedDisk(Random(seed + 1))
        self.brain = Brain(Random(seed + 2))
        self.ledger = Ledger()
        self.errors: list[str] = []

    async def run(self) -> None:
        for _ in range(self.random.randint(1, LIVES_MAX)):
            self.ledger.lives += 1
            await self.life()
            await self.audit()
            await self.recovery()
        await self.last_life()

    @asynccontextmanager
    async def runtime(self) -> AsyncGenerator[Runtime]:
        """Run a runtime on the disk; it must leave no task and no process behind."""
        tasks = trio.lowlevel.current_statistics().tasks_living
        async with (
            self.disk.store() as store,
            vaala.open_runtime(
                storage=store,
                models=self.brain.model,
                tools=self.brain.tools,
                executors={"local": self.brain.executor},
            ) as runtime,
        ):
            seed = self.random.randrange(2**32)
            runtime.definitions = msgspec.structs.replace(
                runtime.definitions, rng=lambda: Random(seed)
            )
            yield runtime
        assert trio.lowlevel.current_statistics().tasks_living == tasks, "a task is left"
        assert self.brain.executor.workspace.live == 0, "a process is left"

    async def life(self) -> None:
        """Let clients work on a disk that fails, until the end comes, this way or another."""
        power_was_lost = self.random.random() < 0.5
        with self._errors_are_noted():
            async with self.disk.until_it_dies(), self.runtime() as runtime:
                self.disk.files.rate = self.random.choice((0.0, 0.0, 0.01, 0.05, 0.2))
                if self.random.random() < 0.4:
                    self.disk.cut_power(self.random.randrange(1, 150))
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._fill_and_free)
                    await self._crowd(runtime)
                    nursery.cancel_scope.cancel()
                if self.random.random() < 0.5:
                    self.disk.stop_now()
                    await trio.sleep_forever()
        self.ledger.crashes += self.disk.files.off
        self.disk.restart(power_was_lost=self.disk.files.off and power_was_lost)

    async def _crowd(self, runtime: Runtime) -> None:
        with trio.move_on_after(self.random.choice((5, 60, 400))):
            async with trio.open_nursery() as nursery:
                for _ in range(self.random.randint(1, 3)):
                    client = Client(runtime, self.ledger, self.brain, self.random)
                    nursery.start_soon(client.run, self.random.randint(5, 25))

    async def _fill_and_free(self) -> None:
        """Now and then the disk is full for a while."""
        while True:
            await trio.sleep(self.random.choice((1, 10, 100)))
            if self.random.random() < 0.3:
                self.disk.fill(self.random.choice((0, 500)))
                await trio.sleep(self.random.choice((0.1, 5, 40)))
                self.disk.make_room()

    async def audit(self) -> None:
        """Look at what is on the disk, without a runtime."""
        async with self.disk.log() as log:
            streams = await read_streams(log)
        check_ledger(streams, self.ledger)
        for sessions in streams.values():
            for stream in sessions:
                stream.check(self.brain.runs)
        assert not self.brain.model.refused, self.brain.model.refused
        assert not self.errors, self.errors

    async def recovery(self) -> None:
        """Open everything: it is settled, and opening it once more changes nothing."""
        with self._errors_are_noted():
            first = await self._opened_and_closed()
            for sessions in first.values():
                for stream in sessions:
                    stream.check_settled()
            second = await self._opened_and_closed()
        for path, sessions in second.items():
            for stream, before in zip(sessions, first[path], strict=True):
                new = stream.entries[len(before.entries) :]
                assert not new, f"opening again has changed {stream.session_id}: {new}"
        await self.audit()

    async def _opened_and_closed(self) -> dict[str, list[Stream]]:
        async with self.runtime() as runtime:
            for conversation_id in await self._ids():
                await runtime.open_conversation(conversation_id)
            await trio.sleep(1)
        async with self.disk.log() as log:
            return await read_streams(log)

    async def _ids(self) -> list[str]:
        async with self.disk.log() as log:
            return list((await log.paths()).paths)

    async def last_life(self) -> None:
        """Without faults and with a calm model everything that waits is done, then checked."""
        self.brain.calm = True
        with self._errors_are_noted():
            async with self.runtime() as runtime:
                for conversation_id in await self._ids():
                    talk = await runtime.open_conversation(conversation_id)
                    await talk.resume()
                    result = await talk.run("follow up")
                    assert result.turn.state == "completed", result
                    await self._check_pages(talk)
        await self.audit()
        async with self.disk.log() as log:
            check_final(await read_streams(log))
        await self._check_index()

    async def _check_pages(self, talk: ConversationHandle) -> None:
        limit = self.random.choice((1, 3, 7, 20))
        pages = [await self._paged(talk, limit, back) for back in (0, 1)]
        pages.append(await self._paged(talk, 1000, self.random.randrange(2)))
        assert all(page == pages[0] for page in pages), "pages differ"
        places = [item.at for item in pages[0]]
        assert places == sorted(places)
        async with talk.subscribe() as updates:
            update = await anext(updates)
        assert isinstance(update, Snapshot)
        (root,) = [one for one in update.sessions if one.info.id == talk.id]
        assert list(root.items) == pages[0][-len(root.items) :]

    async def _paged(self, talk: ConversationHandle, limit: int, back: int) -> list[Item]:
        found: list[Item] = []
        while True:
            if back:
                before = found[0].at if found else None
                page = await talk.items(before=before, limit=limit)
                found, more = [*page.items, *found], page.earlier
            else:
                page = await talk.items(after=found[-1].at if found else 0, limit=limit)
                found, more = [*found, *page.items], page.later
            if not more:
                return found

    async def _check_index(self) -> None:
        other = self.disk.with_new_index()
        async with other.store() as store:
            await store.settled()
        assert await rows_of(self.disk.index.records) == await rows_of(other.index.records)
        for word in WORDS:
            here = await hits_of(self.disk.index.search, word)
            assert here == await hits_of(other.index.search, word), f"search for {word}"

    @contextmanager
    def _errors_are_noted(self) -> Generator[None]:
        """Gather the errors that the runtime logs while the power is on: each is a bug."""
        handler = _Gather(self)
        logger = logging.getLogger("vaala")
        logger.addHandler(handler)
        try:
            yield
        finally:
            logger.removeHandler(handler)


class _Gather(logging.Handler):
    def __init__(self, story: Story) -> None:
        super().__init__(logging.ERROR)
        self._story = story

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        expected = "could not be opened" in text or "a bug in a tool" in str(record.exc_info)
        if not self._story.disk.files.off and not expected:
            self._story.errors.append(logging.Formatter().format(record))


def tell(seed: int) -> Ledger:
    """Run the story of a seed; raises ``AssertionError`` with the seed when it ends badly."""
    clock = trio.testing.MockClock(autojump_threshold=0)
    story = Story(seed)
    try:
        with schedule(seed), pytest.MonkeyPatch.context() as patch:
            patch.setattr("vaala.dao.session_log.CHECKPOINT_AFTER_BYTES_MIN", CHECKPOINT_BYTES)
            trio.run(_bounded, story, clock=clock)
    except BaseException as error:
        error.add_note(f"run it alone: python bench/storms.py --seed {seed}")
        raise
    return story.ledger


async def _bounded(story: Story) -> None:
    with trio.fail_after(STORY_HOURS_MAX):
        await story.run()
