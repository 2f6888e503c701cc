"""Runtimes for tests of lifetimes: on a simulated disk, without anything of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import trio

import vaala
from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.fake_executor import FakeExecutor
from vaala.handle import ConversationHandle
from vaala.models.base import Model
from vaala.runtime import Runtime
from vaala.testing.disk import SimulatedDisk
from vaala_protocol.items import Item
from vaala_protocol.settings import Mode, Settings


class World:
    """What outlives a runtime: the disk; and what each runtime gets: model, tools, processes."""

    def __init__(self, model: Model | Sequence[Model], *, seed: int = 0, **options: Any) -> None:
        self.disk = SimulatedDisk(Random(seed))
        self.executor = FakeExecutor()
        self.model = model
        self._options = options

    @asynccontextmanager
    async def runtime(self) -> AsyncGenerator[Runtime]:
        async with (
            self.disk.store() as store,
            vaala.open_runtime(
                storage=store,
                models=self.model,
                executors={"local": self.executor},
                **self._options,
            ) as runtime,
        ):
            yield runtime

    @asynccontextmanager
    async def talk(self, mode: Mode = "full") -> AsyncGenerator[tuple[Runtime, ConversationHandle]]:
        async with self.runtime() as runtime:
            settings = Settings(mode=mode)
            yield (
                runtime,
                await runtime.create_conversation(directory="/w", settings=settings),
            )


async def kinds(talk: ConversationHandle, kind: type[Any]) -> list[Any]:
    return [item for item in await all_items(talk) if isinstance(item, kind)]


async def all_items(talk: ConversationHandle) -> list[Item]:
    found: list[Item] = []
    page = await talk.items(after=0, limit=200)
    found += page.items
    while page.later:
        page = await talk.items(after=found[-1].at, limit=200)
        found += page.items
    return found


async def settle(seconds: float = 0.0) -> None:
    """Let everything happen that is due within this time."""
    await trio.sleep(seconds)
    await trio.testing.wait_all_tasks_blocked()


@asynccontextmanager
async def crashing(world: World, *, power_was_lost: bool = False) -> AsyncGenerator[None]:
    """Run a block whose runtime dies when the power is cut; then start the machine again."""
    async with world.disk.until_it_dies():
        yield
    world.disk.restart(power_was_lost=power_was_lost)


__all__ = ["World", "all_items", "crashing", "kinds", "run_seeds", "settle"]
