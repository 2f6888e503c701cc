"""How an actor ends: its children first, their last words served, and nobody left waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random
from typing import Any

import pytest
import trio

from tests.vaala.core.echo import Echo, Fail, Say, Start, Work
from tests.vaala.core.seeds import run_seeds
from vaala import limits
from vaala_protocol.errors import BadRequest, Stopping


class _Run:
    """An actor in a task of its own, that is ended in one of several ways."""

    def __init__(self, echo: Echo) -> None:
        self.echo = echo
        self.scope = trio.CancelScope()
        self.errors: list[Exception] = []

    async def serve(self, task_status: trio.TaskStatus[None]) -> None:
        try:
            with self.scope:
                await self.echo.serve(task_status.started)
        except* Exception as group:
            self.errors.append(group)

    def end(self, how: str) -> None:
        match how:
            case "stop":
                self.echo.stop()
            case "cancel":
                self.scope.cancel()
            case "bug in a handler":
                self.echo.report(Fail(ValueError("a bug")))
            case _:
                self.echo.spawn(_raise)


async def _raise() -> None:
    raise ValueError("a bug in a child")


WAYS = ("stop", "cancel", "bug in a handler", "bug in a child")


async def _last_words(echo: Echo, words: str, heard: list[str], pause: float) -> None:
    """Work until cancelled; then write something down, as a turn does when it closes."""
    try:
        await trio.sleep_forever()
    finally:
        with trio.CancelScope(shield=True):
            await trio.sleep(pause)
            try:
                heard.append(await echo.deliver(Say(words)))
            except Stopping:
                heard.append("stopping")
            echo.report(Say(f"{words}, reported"))


@pytest.mark.parametrize("how", WAYS)
def test_children_can_write_down_their_last_words(how: str) -> None:
    async def test(random: Random) -> None:
        echo = Echo()
        heard: list[str] = []
        children = 5
        async with trio.open_nursery() as nursery:
            run = _Run(echo)
            await nursery.start(run.serve)
            for number in range(children):
                pause = random.choice((0, 0.1, 1))
                await echo.ask(Start(_bound(_last_words, echo, f"child {number}", heard, pause)))
            if random.random() < 0.5:
                nursery.start_soon(_ask_and_ignore, echo, Work("a request", random.choice((0, 2))))
            await trio.sleep(random.random())
            run.end(how)
        words = [f"child {number}" for number in range(children)]
        said = [text for text in echo.said if text != "a request"]
        if how == "bug in a handler":
            assert heard == ["stopping"] * children
        else:
            assert sorted(heard) == words
            assert sorted(said) == sorted([*words, *(f"{text}, reported" for text in words)])
            assert echo.asked_to_close == 1
        assert bool(run.errors) == how.startswith("bug")

    run_seeds(test, 60)


async def _ask_and_ignore(echo: Echo, command: Work) -> None:
    try:
        await echo.ask(command)
    except Stopping:
        return


def _bound(fn: Callable[..., Awaitable[object]], *args: object) -> Callable[[], Awaitable[object]]:
    return lambda: fn(*args)


@pytest.mark.parametrize("how", ["refused", "bug", "cancel"])
def test_a_child_of_an_actor_that_does_not_open_gets_an_answer(how: str) -> None:
    async def test(random: Random) -> None:
        echo = Echo()
        heard: list[str] = []
        echo.first_child = _bound(_last_words, echo, "words", heard, random.choice((0, 1)))

        async def opening() -> None:
            await trio.sleep(random.choice((0.1, 1)))
            match how:
                case "refused":
                    raise BadRequest("not today")
                case "bug":
                    raise ValueError("a bug")
                case _:
                    scope.cancel()
                    await trio.sleep_forever()

        echo.opening = opening
        with trio.CancelScope() as scope:
            try:
                await echo.serve(lambda: pytest.fail("it never opens"))
            except* (BadRequest, ValueError):
                assert how != "cancel"
        assert heard == ["stopping"]
        with pytest.raises(Stopping):
            await echo.ask(Say("nobody is there"))

    run_seeds(test, 30)


async def test_a_stopping_actor_does_not_tear_the_work_it_has_begun(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    """A request that is being written when the stop comes is written, with no child to wait for."""
    echo = Echo()
    run = _Run(echo)
    await nursery.start(run.serve)
    answers: list[str] = []

    async def ask() -> None:
        answers.append(await echo.ask(Work("slow disk", limits.SHUTDOWN_S - 1)))

    nursery.start_soon(ask)
    await trio.testing.wait_all_tasks_blocked()
    echo.stop()
    await trio.sleep(limits.SHUTDOWN_S)
    assert answers == echo.said == ["slow disk"]


class Slow(Echo):
    """Writes something down before it starts a child, as a session does."""

    async def handle(self, command: Any) -> Any:
        if isinstance(command, Start):
            await trio.sleep(3)
        return await super().handle(command)


async def test_work_that_never_ends_is_cancelled_at_the_deadline(
    autojump_clock: trio.testing.MockClock,
) -> None:
    echo = Echo()
    async with trio.open_nursery() as nursery:
        await nursery.start(_Run(echo).serve)
        nursery.start_soon(_ask_and_ignore, echo, Work("dead disk", 20))
        await trio.testing.wait_all_tasks_blocked()
        began = trio.current_time()
        echo.stop()
    took_s = trio.current_time() - began
    assert took_s == pytest.approx(limits.SHUTDOWN_S + limits.LAST_WORDS_S)
    assert echo.said == []


@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_child_that_the_last_request_starts_is_ended_like_the_others(
    autojump_clock: trio.testing.MockClock, how: str
) -> None:
    echo = Slow()
    heard: list[str] = []
    async with trio.open_nursery() as nursery:
        run = _Run(echo)
        await nursery.start(run.serve)
        nursery.start_soon(echo.ask, Start(_bound(_last_words, echo, "words", heard, 0.5)))
        await trio.testing.wait_all_tasks_blocked()
        run.end(how)
    assert run.errors == []
    assert heard == ["words"]
    assert echo.said == ["words", "words, reported"]


async def test_stubborn_children_are_cancelled_at_the_deadline_and_heard(
    autojump_clock: trio.testing.MockClock,
) -> None:
    class Patient(Echo):
        async def closing(self) -> None:
            """Wait for children without an end."""

    echo = Patient()
    heard: list[str] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(_Run(echo).serve)
        echo.spawn(_last_words, echo, "stubborn", heard, 0.5)
        began = trio.current_time()
        echo.stop()
    assert trio.current_time() - began == pytest.approx(limits.SHUTDOWN_S + 0.5)
    assert heard == ["stubborn"]
    assert echo.said == ["stubborn", "stubborn, reported"]


async def test_outside_requests_are_refused_while_children_end(
    autojump_clock: trio.testing.MockClock,
) -> None:
    echo = Echo()
    heard: list[str] = []
    async with trio.open_nursery() as nursery:
        run = _Run(echo)
        await nursery.start(run.serve)
        echo.spawn(_last_words, echo, "words", heard, 5)
        await trio.testing.wait_all_tasks_blocked()
        run.end("cancel")
        await trio.sleep(1)
        assert echo.stopping
        with pytest.raises(Stopping):
            await echo.ask(Say("from outside"))
    assert echo.said == ["words", "words, reported"]


def test_a_last_report_may_ask_for_one_more_child() -> None:
    """It is started and cancelled, or, when the others have ended, not started: no crash."""
    began: list[int] = []

    async def test(random: Random) -> None:
        echo = Echo()

        async def too_late() -> None:
            began.append(1)
            await trio.sleep_forever()

        async def child() -> None:
            try:
                await trio.sleep_forever()
            finally:
                echo.report(Start(too_late))

        async with trio.open_nursery() as nursery:
            run = _Run(echo)
            await nursery.start(run.serve)
            for _ in range(random.randint(1, 3)):
                await echo.ask(Start(child))
            await trio.testing.wait_all_tasks_blocked()
            run.end(random.choice(("stop", "cancel")))
        assert run.errors == []

    run_seeds(test, 100)
    assert began, "some were started"


async def test_a_crash_answers_everybody_and_names_the_bug(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    run = _Run(echo)
    await nursery.start(run.serve)
    with pytest.raises(Stopping, match=r"echo crashed: ValueError\('a bug'\)"):
        await echo.ask(Fail(ValueError("a bug")))
    with pytest.raises(Stopping):
        await echo.deliver(Say("too late"))
    await trio.testing.wait_all_tasks_blocked()
    assert len(run.errors) == 1
