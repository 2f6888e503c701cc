"""The calls of all sessions to one provider: in turn after a refusal, and never in a storm."""

from __future__ import annotations

import random
from collections.abc import Generator
from contextlib import contextmanager

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.core.seeds import run_seeds
from tests.vaala.models.rationed import Rationed
from vaala.models.base import ModelFailure, ModelRequest, UserSaid
from vaala.models.caller import Answered, Caller, unseen
from vaala.models.limiter import Limiter, Limiters, is_busy
from vaala.models.limits import CALM_S, LIMITERS_MAX, NOT_REFUSED_S, SAT_THROUGH_S
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala_protocol.content import TextContent
from vaala_protocol.settings import ErrorKind


class Calls:
    """Makes calls to one model, each named by its prompt; tells how they end and what they wait
    for."""

    def __init__(self, model: Rationed) -> None:
        self.model = model
        self.ended: dict[str, str] = {}
        self.attempts: dict[str, int] = {}
        self.waits: dict[str, tuple[str, float | None]] = {}
        self._rng = random.Random(1)

    async def make(self, prompt: str) -> None:
        @contextmanager
        def waiting(reason: str, seconds: float | None) -> Generator[None]:
            self.waits[prompt] = (reason, seconds)
            try:
                yield
            finally:
                del self.waits[prompt]

        caller = Caller(self.model, self._rng, waiting)
        while True:
            try:
                async with caller.turn() as answered:
                    self.attempts[prompt] = caller.attempt
                    await self._stream(prompt, answered)
                self.ended[prompt] = "answered"
                return
            except ModelFailure as failure:
                if (wait_s := caller.wait_s(failure)) is None:
                    self.ended[prompt] = f"{type(failure).__name__}: {failure.message}"
                    return
                await caller.rest(failure, wait_s)

    async def _stream(self, prompt: str, answered: Answered) -> None:
        messages = (UserSaid((TextContent(text=prompt),)),)
        async with self.model.stream(ModelRequest("", (), b"", messages)) as events:
            async for _ in events:
                answered()

    async def make_all(self, number: int) -> None:
        async with trio.open_nursery() as nursery:
            for one in range(number):
                nursery.start_soon(self.make, str(one))


@pytest.mark.parametrize("latency_s", [0.0, 0.5, 3.0])
async def test_fifty_calls_through_a_small_window(  # B4-5
    latency_s: float, autojump_clock: MockClock
) -> None:
    calls = Calls(model := Rationed(10, latency_s=latency_s))
    await calls.make_all(50)
    assert set(calls.ended.values()) == {"answered"}
    assert model.early == []
    assert model.passed == model.came
    # The first forty cannot know. The next window shows how many it takes; then one is too many.
    assert len(model.refused) <= 40 + 6 + 3
    assert max(calls.attempts.values()) <= 4
    # No window is lost: the fifth begins after 240 s.
    assert trio.current_time() < 240 + 10 + 3 * latency_s


async def test_without_a_word_of_when_they_ask_less_and_less(autojump_clock: MockClock) -> None:
    calls = Calls(model := Rationed(10, tells=False))
    await calls.make_all(50)
    assert set(calls.ended.values()) == {"answered"}
    assert model.passed == model.came
    # After 1, 2, 4, 8, 16, 30 s: six or seven in a window of a minute.
    assert len(model.refused) <= 40 + 45


async def test_when_nothing_is_refused_nobody_waits(autojump_clock: MockClock) -> None:
    calls = Calls(Rationed(1000))
    await calls.make_all(200)
    assert trio.current_time() == 0.5
    assert calls.model.running_max == 200


async def test_waits_are_seen(autojump_clock: MockClock) -> None:
    calls = Calls(Rationed(1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(calls.make_all, 3)
        await trio.sleep(1)
        assert len(calls.waits) == 2
        for reason, seconds in calls.waits.values():
            assert reason == "p: rate limit (HTTP 429); nobody asks before"
            assert seconds is not None
            assert 59 < seconds < 61
        await trio.sleep(59.5)
        ((reason, seconds),) = calls.waits.values()
        assert reason == "its turn among all calls; p: rate limit (HTTP 429)"
        assert seconds is not None


class Others:
    """Calls one after the other, each of which can be cancelled."""

    def __init__(self, calls: Calls, nursery: trio.Nursery) -> None:
        self._calls = calls
        self._nursery = nursery
        self.scopes: dict[str, trio.CancelScope] = {}

    async def begin(self, *prompts: str) -> None:
        for prompt in prompts:
            self.scopes[prompt] = trio.CancelScope()
            self._nursery.start_soon(self._run, prompt)
            await wait_all_tasks_blocked()

    async def _run(self, prompt: str) -> None:
        with self.scopes[prompt]:
            await self._calls.make(prompt)


async def test_a_cancel_takes_effect_at_once_and_the_next_one_goes(
    autojump_clock: MockClock,
) -> None:
    calls = Calls(model := Rationed(1))
    async with trio.open_nursery() as nursery:
        others = Others(calls, nursery)
        await others.begin("0", "1", "2", "3", "4", "5")
        await trio.sleep(10)
        assert sorted(calls.waits) == ["1", "2", "3", "4", "5"]
        for prompt in ("1", "2", "4"):
            others.scopes[prompt].cancel()
        await wait_all_tasks_blocked()
        assert trio.current_time() == 10
        assert sorted(calls.waits) == ["3", "5"]
    assert model.passed == ["0", "3", "5"]
    assert model.early == []


@pytest.mark.parametrize("how", ["cancelled", "refused for itself"])
async def test_a_first_call_that_tells_nothing_holds_up_nobody(
    how: str, autojump_clock: MockClock
) -> None:
    calls = Calls(model := Rationed(10))
    async with trio.open_nursery() as nursery:
        others = Others(calls, nursery)
        await others.begin(*(str(one) for one in range(13)))
        await trio.sleep(59.9)
        model.failures["10"] = ModelFailure("invalid_request", "no", status=400)
        model.latencies["10"] = 1e6 if how == "cancelled" else 0.5
        await trio.sleep(0.3)
        assert sorted(calls.waits) == ["11", "12"]
        if how == "cancelled":
            others.scopes["10"].cancel()
            await wait_all_tasks_blocked()
        else:
            await trio.sleep(0.5)
        assert model.came[-1] == "12"
        assert sorted(calls.waits) == ["12"]
    assert calls.ended["12"] == "answered"


async def test_who_thinks_long_before_the_first_byte_holds_up_nobody(
    autojump_clock: MockClock,
) -> None:
    calls = Calls(model := Rationed(2, latency_s=40))
    model.latencies = dict.fromkeys("2345", 0.1)
    await calls.make_all(6)
    assert model.early == []
    assert len(model.passed) == 6


async def test_one_call_that_makes_the_server_fail_holds_up_nobody(
    autojump_clock: MockClock,
) -> None:
    calls = Calls(model := Rationed(10))
    model.failures["bad"] = ModelFailure("overloaded", "no", retryable=True, status=500)
    async with trio.open_nursery() as nursery:
        others = Others(calls, nursery)
        await others.begin("bad")
        await trio.sleep(0.6)
        await others.begin("good")
        await trio.sleep(0.6)
        assert calls.ended == {"good": "answered"}
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("kind", "retryable", "status", "after_s", "busy"),
    [
        ("rate_limit", True, 429, None, True),
        ("rate_limit", True, None, None, True),
        ("rate_limit", False, 413, None, False),
        ("overloaded", True, 503, None, True),
        ("overloaded", True, 529, None, True),
        ("overloaded", True, None, None, True),
        ("overloaded", True, 500, None, False),
        ("overloaded", True, 500, 3.0, True),
        ("network", True, None, None, False),
        ("billing", False, 429, 3.0, False),
    ],
)
def test_what_says_that_the_provider_is_busy(
    kind: ErrorKind, retryable: bool, status: int | None, after_s: float | None, busy: bool
) -> None:
    failure = ModelFailure(kind, "", retryable=retryable, retry_after_s=after_s, status=status)
    assert is_busy(failure) == busy


async def test_a_wait_that_nobody_sits_through_is_told_to_all(autojump_clock: MockClock) -> None:
    calls = Calls(model := Rationed(1, 3600))
    async with trio.open_nursery() as nursery:
        others = Others(calls, nursery)
        await others.begin("0", "1")
        await trio.sleep(1)
        assert calls.ended["1"] == "ModelFailure: p: rate limit (HTTP 429)"
        await others.begin("2", "3")
        assert trio.current_time() == 1
        assert calls.ended["2"] == "NotSent: p: rate limit (HTTP 429)"
        assert "2" not in calls.attempts
        # Much later the limit may have been lifted: one asks, and has the answer for all.
        await trio.sleep(SAT_THROUGH_S)
        await others.begin("4", "5", "6")
        await trio.sleep(1)
        assert calls.ended["4"] == "ModelFailure: p: rate limit (HTTP 429)"
        assert calls.ended["5"] == calls.ended["6"] == "NotSent: p: rate limit (HTTP 429)"
    assert model.refused == ["1", "4"]


async def test_where_nothing_gets_through_all_end_in_time(autojump_clock: MockClock) -> None:
    calls = Calls(model := Rationed(0, tells=False))
    await calls.make_all(50)
    assert trio.current_time() < 2 * SAT_THROUGH_S
    assert len(model.refused) < 50 + 30
    assert all("rate limit" in text for text in calls.ended.values())
    assert any("no call got through for 300 s" in text for text in calls.ended.values())


async def test_the_time_in_which_others_go_first_is_nobodys_attempt(
    autojump_clock: MockClock,
) -> None:
    """The last of twenty waits much longer than the policy sits through for one call."""
    calls = Calls(model := Rationed(1, 30))
    await calls.make_all(20)
    assert set(calls.ended.values()) == {"answered"}
    assert trio.current_time() > 19 * 30 > SAT_THROUGH_S
    assert model.early == []
    assert model.passed == model.came
    assert max(calls.attempts.values()) <= 3


async def test_a_refusal_is_forgotten_when_all_is_calm(autojump_clock: MockClock) -> None:
    calls = Calls(model := Rationed(5))
    await calls.make_all(6)
    assert not model.limiter.idle
    await trio.sleep(60 + CALM_S)
    assert model.limiter.idle
    began = trio.current_time()
    async with trio.open_nursery() as nursery:
        for one in range(5):
            nursery.start_soon(calls.make, f"later {one}")
    assert trio.current_time() == began + 0.5


async def test_no_more_at_once_than_may_be(autojump_clock: MockClock) -> None:
    calls = Calls(model := Rationed(1000, requests_max=3))
    async with trio.open_nursery() as nursery:
        others = Others(calls, nursery)
        await others.begin(*(str(one) for one in range(12)))
        assert calls.waits["5"] == ("its turn: no more than 3 calls at once", None)
        others.scopes["0"].cancel()
        others.scopes["4"].cancel()
    assert model.running_max == 3
    assert model.passed == [str(one) for one in range(12) if one != 4]
    assert trio.current_time() == 2.0


def test_nobody_is_lost_whoever_is_cancelled() -> None:
    async def story(rng: random.Random) -> None:
        requests_max = rng.choice([None, 1, 3])
        tells = rng.random() < 0.5
        model = Rationed(rng.randint(0, 5), 20, tells=tells, requests_max=requests_max)
        calls = Calls(model)
        async with trio.open_nursery() as nursery:
            others = Others(calls, nursery)
            for number in range(20):
                prompt = str(number)
                model.latencies[prompt] = rng.choice([0, 0.5, 2 * NOT_REFUSED_S, 30])
                await others.begin(prompt)
                await trio.sleep(rng.choice([0, 0, 0, 1, 10]))
                for scope in others.scopes.values():
                    if rng.random() < 0.02:
                        scope.cancel()
        cancelled = {name for name, scope in others.scopes.items() if scope.cancelled_caught}
        assert calls.ended.keys() | cancelled == set(others.scopes)
        assert model.early == []
        assert model.running_max <= (requests_max or 20)
        assert calls.waits == {}
        await trio.sleep(SAT_THROUGH_S + CALM_S)
        assert model.limiter.idle

    run_seeds(story, 60)


async def test_one_limiter_for_each_server_and_key(autojump_clock: MockClock) -> None:
    limiters = Limiters()
    provider = Provider("a", "http://x/v1", key=Secret("one"))
    first = limiters.of(provider)
    assert limiters.of(Provider("b", "http://x/v1", key=Secret("one"))) is first
    assert limiters.of(Provider("a", "http://x/v1", key=Secret("two"))) is not first
    assert limiters.of(Provider("a", "http://y/v1", key=Secret("one"))) is not first
    headers = {"x-key": Secret("three")}
    assert limiters.of(Provider("a", "http://x/v1", headers=headers)) is not first
    assert limiters.of(Provider("a", "http://x/v1", key=Secret("one"), requests_max=2)) is first
    assert first.requests_max == 2


async def test_limiters_are_bounded_and_those_with_something_to_do_stay(
    autojump_clock: MockClock,
) -> None:
    limiters = Limiters()

    def of(number: int) -> Limiter:
        return limiters.of(Provider("a", f"http://{number}/v1"))

    busy, idle = of(0), of(1)
    sent = await busy.let_out(busy.place(unseen))
    for number in range(2, LIMITERS_MAX + 1):
        of(number)
    assert of(0) is busy
    assert of(1) is not idle
    busy.ended(sent)
