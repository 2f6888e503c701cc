"""Actors opened on demand: one for each key, behind a fence, reopened when they are gone."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from random import Random

import pytest
import trio

from tests.vaala.core.echo import Echo, Fail, Say, Work
from tests.vaala.core.seeds import run_seeds
from vaala.table import Table
from vaala_protocol.errors import NotFound, Refused, Stopping


class Makers:
    """Makes actors, as slowly and as badly as told, and counts those that are alive."""

    def __init__(self) -> None:
        self.opened: Counter[str] = Counter()
        self.alive: Counter[str] = Counter()
        self.most_alive = 0
        self.before: Callable[[], None] = lambda: None
        self.after: Callable[[], None] = lambda: None
        self.slow_s = 0.0
        self.made: list[Echo] = []

    @asynccontextmanager
    async def __call__(self, key: str) -> AsyncGenerator[Echo]:
        self.opened[key] += 1
        self.alive[key] += 1
        self.most_alive = max(self.most_alive, self.alive[key])
        try:
            await trio.sleep(self.slow_s)
            self.before()
            self.made.append(Echo(key))
            yield self.made[-1]
            self.after()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(self.slow_s)
            self.alive[key] -= 1


def _raiser(error: Exception) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


async def test_looking_up_is_synchronous_and_opens_nothing(nursery: trio.Nursery) -> None:
    makers = Makers()
    table = Table(nursery, makers)
    assert table.find("a") is None
    assert len(table) == 0
    actor = await table.get("a")
    assert table.find("a") is actor
    assert list(table) == [actor]
    assert await table.get("a") is actor
    assert makers.opened == {"a": 1}
    nursery.cancel_scope.cancel()


async def test_many_callers_share_one_opening(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    makers = Makers()
    makers.slow_s = 1
    table = Table(nursery, makers)
    got: list[Echo] = []

    async def get() -> None:
        got.append(await table.get("a"))

    async with trio.open_nursery() as callers:
        for _ in range(20):
            callers.start_soon(get)
    assert len(got) == 20
    assert len(set(got)) == makers.opened["a"] == 1
    nursery.cancel_scope.cancel()


async def test_a_caller_that_goes_away_does_not_undo_the_opening(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    makers = Makers()
    makers.slow_s = 10
    table = Table(nursery, makers)
    with trio.move_on_after(1):
        await table.get("a")
    assert table.find("a") is None
    await trio.sleep(10)
    assert table.find("a") is not None
    assert makers.opened["a"] == 1
    nursery.cancel_scope.cancel()


async def test_a_refusal_reaches_every_caller_and_the_next_one_tries_again(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    makers = Makers()
    makers.slow_s = 1
    makers.before = _raiser(NotFound("no conversation a"))
    table = Table(nursery, makers)
    refusals: list[NotFound] = []

    async def get() -> None:
        with pytest.raises(NotFound, match="no conversation a") as caught:
            await table.get("a")
        refusals.append(caught.value)

    async with trio.open_nursery() as callers:
        for _ in range(5):
            callers.start_soon(get)
    assert len(refusals) == 5
    assert len(set(map(id, refusals))) == 5, "each caller has an exception of its own"
    makers.before = lambda: None
    assert (await table.get("a")).name == "a"
    assert makers.opened["a"] == 2
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize("where", ["opening", "running", "closing"])
async def test_a_crash_is_contained_logged_and_told(
    nursery: trio.Nursery,
    autojump_clock: trio.testing.MockClock,
    caplog: pytest.LogCaptureFixture,
    where: str,
) -> None:
    makers = Makers()
    crashes: list[tuple[str, str]] = []
    table = Table(nursery, makers, lambda key, error: crashes.append((key, repr(error))))
    group = ExceptionGroup("several", [ExceptionGroup("inner", [ValueError("a bug")])])
    if where == "opening":
        makers.before = _raiser(group)
        with pytest.raises(Stopping, match="could not be opened: ValueError: a bug"):
            await table.get("a")
    else:
        actor = await table.get("a")
        if where == "running":
            with pytest.raises(Stopping, match="a bug"):
                await actor.ask(Fail(group))
        else:
            makers.after = _raiser(group)
            await table.close("a")
    await trio.testing.wait_all_tasks_blocked()
    makers.before = makers.after = lambda: None
    assert crashes == [("a", "ValueError('a bug')")]
    assert "Traceback" in caplog.text
    assert "a bug" in caplog.text
    assert len(table) == 0
    assert await (await table.get("a")).ask(Say("open again")) == "open again"
    nursery.cancel_scope.cancel()


async def test_a_bug_beside_a_refusal_is_not_hidden_by_it(
    nursery: trio.Nursery, caplog: pytest.LogCaptureFixture
) -> None:
    makers = Makers()
    makers.before = _raiser(ExceptionGroup("", [NotFound("no a"), ValueError("a bug")]))
    table = Table(nursery, makers)
    with pytest.raises(Stopping, match="a bug"):
        await table.get("a")
    assert "a bug" in caplog.text


async def test_a_crash_while_the_table_ends_stays_inside(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The actor's own error comes along with the cancel that ends everything."""

    class Bad(Echo):
        async def opened(self) -> None:
            self.spawn(self._fail_late)

        async def _fail_late(self) -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("a bug in the clean-up")

    @asynccontextmanager
    async def make(_: str) -> AsyncGenerator[Bad]:
        yield Bad()

    async with trio.open_nursery() as nursery:
        await Table(nursery, make).get("a")
        nursery.cancel_scope.cancel()
    assert "a bug in the clean-up" in caplog.text


async def test_a_dying_actor_is_waited_for(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    makers = Makers()
    makers.slow_s = 1
    table = Table(nursery, makers)
    first = await table.get("a")
    nursery.start_soon(_ignore_stopping, first, Work("the last", 5))
    await trio.testing.wait_all_tasks_blocked()
    first.stop()
    assert table.find("a") is None
    second = await table.get("a")
    assert second is not first
    assert first.said == ["the last"]
    assert makers.most_alive == 1
    nursery.cancel_scope.cancel()


async def _ignore_stopping(actor: Echo, command: Work) -> None:
    with suppress(Stopping):
        await actor.ask(command)


async def test_closing_waits_for_the_end_and_for_an_opening_before_it(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    makers = Makers()
    makers.slow_s = 1
    table = Table(nursery, makers)
    await table.close("never opened")
    with trio.move_on_after(0.5):
        await table.get("a")
    await table.close("a")
    assert makers.alive["a"] == 0
    assert len(table) == 0


async def test_a_table_whose_nursery_has_ended_refuses() -> None:
    async with trio.open_nursery() as nursery:
        table = Table(nursery, Makers())
    for _ in range(2):
        with pytest.raises(Stopping):
            await table.get("a")
    assert len(table) == 0


def test_there_are_never_two_actors_of_one_key(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)

    async def test(random: Random) -> None:
        makers = Makers()
        makers.slow_s = 0.1
        errors = [NotFound("gone"), ValueError("a bug"), None, None, None]

        def before() -> None:
            if (error := random.choice(errors)) is not None:
                raise error

        makers.before = makers.after = before
        served = Counter[str]()

        async def client(name: str) -> None:
            for number in range(6):
                await trio.sleep(random.choice((0, 0.05, 0.3)))
                key = random.choice("ab")
                try:
                    with trio.move_on_after(random.choice((0.05, 5))):
                        actor = await table.get(key)
                        match random.randrange(5):
                            case 0:
                                actor.stop()
                            case 1:
                                await table.close(key)
                            case 2:
                                await actor.ask(Fail(KeyError("a bug")))
                            case _:
                                text = f"{name} {number}"
                                assert await actor.ask(Say(text)) == text
                                served[key] += 1
                except Refused:
                    continue

        async with trio.open_nursery() as nursery:
            table = Table(nursery, makers)
            async with trio.open_nursery() as clients:
                for name in "123456":
                    clients.start_soon(client, name)
            for key in "ab":
                await table.close(key)
            assert len(table) == 0
        assert makers.most_alive == 1
        assert makers.alive.total() == 0

    run_seeds(test, 100)
