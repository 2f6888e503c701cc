"""What an actor promises to those who ask it."""

from __future__ import annotations

from random import Random

import pytest
import trio

from tests.vaala.core.echo import Ask, Echo, Fail, Say, Start, Work
from tests.vaala.core.seeds import run_seeds
from vaala import limits
from vaala.actor import WouldDeadlock
from vaala_protocol.errors import BadRequest, Overloaded, Stopping, TimedOut


async def test_the_answer_of_the_handler(nursery: trio.Nursery) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    assert await echo.ask(Say("hello")) == "hello"


async def test_a_refusal_is_an_answer_and_the_actor_lives_on(nursery: trio.Nursery) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    with pytest.raises(BadRequest, match="no such thing"):
        await echo.ask(Fail(BadRequest("no such thing")))
    assert await echo.ask(Say("still here")) == "still here"


async def test_a_full_queue_refuses_one_more(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    nursery.start_soon(echo.ask, Work("long", 10))
    await trio.testing.wait_all_tasks_blocked()
    for _ in range(limits.INBOX_REQUESTS_MAX):
        nursery.start_soon(echo.ask, Say("queued"))
    await trio.testing.wait_all_tasks_blocked()
    with pytest.raises(Overloaded, match=f"{limits.INBOX_REQUESTS_MAX} requests wait"):
        await echo.ask(Say("one too many"))
    await trio.sleep(11)
    assert echo.said == ["long", *["queued"] * limits.INBOX_REQUESTS_MAX]


async def test_those_who_went_away_leave_their_place_in_the_queue(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    nursery.start_soon(echo.ask, Work("long", 10))
    await trio.testing.wait_all_tasks_blocked()
    with trio.move_on_after(1):
        async with trio.open_nursery() as impatient:
            for _ in range(limits.INBOX_REQUESTS_MAX):
                impatient.start_soon(echo.ask, Say("gone"))
    assert await echo.ask(Say("there is room")) == "there is room"
    assert echo.said == ["long", "there is room"]


async def test_the_deadline_covers_the_queue(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    nursery.start_soon(echo.ask, Work("long", 20))
    await trio.testing.wait_all_tasks_blocked()
    began = trio.current_time()
    with pytest.raises(TimedOut, match="no answer to Say in 5 s"):
        await echo.ask(Say("late"), timeout=5)
    assert trio.current_time() - began == pytest.approx(5)
    await trio.sleep(30)
    assert echo.said == ["long"], "a request whose asker has gone before it began is dropped"


async def test_the_deadline_covers_the_work_which_is_finished_all_the_same(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    with pytest.raises(TimedOut):
        await echo.ask(Work("long", 20), timeout=5)
    await trio.sleep(30)
    assert echo.said == ["long"]


async def test_reports_go_first_and_are_never_refused(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    nursery.start_soon(echo.ask, Work("long", 10))
    await trio.testing.wait_all_tasks_blocked()
    for _ in range(limits.INBOX_REQUESTS_MAX):
        nursery.start_soon(echo.ask, Say("request"))
    await trio.testing.wait_all_tasks_blocked()
    for number in range(3 * limits.INBOX_REQUESTS_MAX):
        echo.report(Say(f"report {number}"))
    assert await echo.deliver(Say("delivered")) == "delivered"
    reports = [f"report {number}" for number in range(3 * limits.INBOX_REQUESTS_MAX)]
    served_first = ["long", *reports, "delivered"]
    assert echo.said[: len(served_first)] == served_first


async def test_a_cycle_of_askers_is_an_error_at_once() -> None:
    one, two = Echo("one"), Echo("two")
    with pytest.RaisesGroup(WouldDeadlock, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(one.serve)
            nursery.start_soon(two.serve)
            with pytest.raises(Stopping, match=r"two crashed: WouldDeadlock"):
                await one.ask(Ask(two, Ask(one, Say("never"))))
    assert one.said == []


async def test_asking_oneself_is_a_cycle() -> None:
    echo = Echo()
    with pytest.RaisesGroup(WouldDeadlock, flatten_subgroups=True):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(echo.serve)
            with pytest.raises(Stopping, match="WouldDeadlock"):
                await echo.ask(Ask(echo, Say("never")))


async def test_a_child_may_ask_the_actor_that_started_it(nursery: trio.Nursery) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    answers: list[str] = []
    heard = trio.Event()

    async def child() -> None:
        answers.append(await echo.ask(Say("from the child")))
        heard.set()

    await echo.ask(Start(child))
    await heard.wait()
    assert answers == ["from the child"]


async def test_an_actor_that_stops_refuses_at_once(
    nursery: trio.Nursery, autojump_clock: trio.testing.MockClock
) -> None:
    echo = Echo()
    await nursery.start(_served, echo)
    nursery.start_soon(echo.ask, Work("long", 3))
    await trio.testing.wait_all_tasks_blocked()
    echo.stop()
    with pytest.raises(Stopping):
        await echo.ask(Say("too late"))
    await trio.sleep(5)
    assert echo.said == ["long"], "what has begun is finished"
    assert echo.asked_to_close == 1


def test_every_request_is_answered_once_however_the_actor_ends() -> None:
    """Of many askers each gets its answer or a reason, and what was answered was done once."""

    async def test(random: Random) -> None:
        echo = Echo()
        outcomes: dict[str, str] = {}
        commands: list[Say | Work] = [
            *(Work(f"work {number}", random.choice((0, 0.1, 1))) for number in range(20)),
            *(Say(f"say {number}") for number in range(20)),
        ]
        random.shuffle(commands)

        async def ask(command: Say | Work) -> None:
            await trio.sleep(random.choice((0, 0.1, 0.5, 1)))
            try:
                outcomes[command.text] = await echo.ask(command, timeout=2)
            except (Stopping, TimedOut) as refusal:
                outcomes[command.text] = type(refusal).__name__

        async with trio.open_nursery() as askers:
            for command in commands:
                askers.start_soon(ask, command)
            await _end_somehow(echo, random.choice(("stop", "cancel", "crash")), random.random())
        assert outcomes.keys() == {command.text for command in commands}
        assert all(outcome in (text, "Stopping", "TimedOut") for text, outcome in outcomes.items())
        answered = [text for text, outcome in outcomes.items() if outcome == text]
        assert set(answered) <= set(echo.said)
        assert len(echo.said) == len(set(echo.said))

    run_seeds(test, 150)


async def _end_somehow(echo: Echo, how: str, after: float) -> None:
    with trio.CancelScope() as scope:
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(_served, echo)
                await trio.sleep(after)
                match how:
                    case "stop":
                        echo.stop()
                    case "cancel":
                        scope.cancel()
                    case _:
                        echo.report(Fail(ValueError("a bug")))
        except* ValueError:
            assert how == "crash"


async def _served(echo: Echo, task_status: trio.TaskStatus[None]) -> None:
    await echo.serve(task_status.started)
