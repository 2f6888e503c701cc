"""What is asked of a client: bounded, failing at once when it goes, told to the newest one."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.services.fakes import (
    Connection,
    FakeElicitor,
    FakeFiles,
    FakeTerminals,
    FakeTools,
    Manner,
    a_tool,
)
from vaala.services import limits
from vaala.services.base import Offer
from vaala.services.errors import (
    ServiceFailure,
    ServiceGarbled,
    ServiceGone,
    ServiceLacks,
    ServiceRefused,
    ServiceSilent,
)
from vaala.services.files import read_text, write_text
from vaala.services.live import LiveOffer
from vaala.services.registry import Services
from vaala.services.terminal import run_in_terminal
from vaala_executors import Command, ExecutorError
from vaala_protocol.base import Malformed
from vaala_protocol.errors import Failed, NotFound, Overloaded, Refused, Stopping


async def start(live: LiveOffer) -> None:
    async with run_in_terminal(live, Command(argv=("ls",)), "/w", {}):
        pass


async def write(live: LiveOffer) -> None:
    await write_text(live, "/w/a", "text")


async def run(live: LiveOffer) -> None:
    tools = live.offer.tools
    assert tools is not None
    await live.ask("run deploy", limits.TOOL_S, lambda: tools.run("c", "deploy", {}), changes=True)


async def read(live: LiveOffer) -> None:
    assert live.offer.files is not None
    await live.ask("read a", limits.FILE_READ_S, lambda: files_of(live).read("/w/a"))


def files_of(live: LiveOffer) -> FakeFiles:
    assert isinstance(live.offer.files, FakeFiles)
    return live.offer.files


Kind = tuple[Callable[[LiveOffer], Awaitable[None]], Callable[[Offer], Manner], float]


def manner(service: str) -> Callable[[Offer], Manner]:
    def of(offer: Offer) -> Manner:
        found: Manner = getattr(offer, service).manner
        return found

    return of


KINDS: dict[str, Kind] = {
    "read": (read, manner("files"), limits.FILE_READ_S),
    "write": (write, manner("files"), limits.FILE_WRITE_S),
    "terminal": (start, manner("terminals"), limits.TERMINAL_START_S),
    "tool": (run, manner("tools"), limits.TOOL_S),
}
kinds = pytest.mark.parametrize("kind", KINDS)


def an_offer(client: str = "Zed") -> Offer:
    return Offer(
        client,
        files=FakeFiles({"/w/a": "text"}),
        terminals=FakeTerminals(),
        tools=FakeTools(a_tool()),
        elicitor=FakeElicitor(),
    )


@kinds
async def test_a_client_that_goes_in_the_middle_fails_its_call_at_once(
    kind: str, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    call, manner_of, _ = KINDS[kind]
    services, offer = Services(), an_offer()
    connection = Connection(services, offer)
    live = services.reader
    assert live is not None
    manner_of(offer).silent = True
    began = trio.current_time()
    nursery.start_soon(_close_when_asked, manner_of(offer), connection)
    with pytest.raises(ServiceGone, match="Zed went away") as caught:
        await call(live)
    assert trio.current_time() == began
    assert manner_of(offer).cancelled, "the client is told that nobody waits any more"
    assert ("not known" in str(caught.value)) == (kind != "read")
    with pytest.raises(ServiceGone, match="is gone and was not asked"):
        await call(live)
    assert len(manner_of(offer).asked) == 1


async def _close_when_asked(manner: Manner, connection: Connection) -> None:
    await manner.news.wait()
    connection.close()


@kinds
async def test_a_client_that_never_answers_has_a_deadline(
    kind: str, autojump_clock: MockClock
) -> None:
    call, manner_of, seconds = KINDS[kind]
    offer = an_offer()
    live = LiveOffer(offer)
    manner_of(offer).silent = True
    began = trio.current_time()
    with pytest.raises(ServiceSilent, match=f"Zed was asked to .* within {seconds:g} s"):
        await call(live)
    assert trio.current_time() - began == seconds
    assert manner_of(offer).cancelled


ERRORS: list[tuple[Exception, type[ServiceFailure], str]] = [
    (Malformed("expected `str`, got `int` - at `$.text`"), ServiceGarbled, "cannot be read: expe"),
    (Refused("the person\nsaid no"), ServiceRefused, "did not .*: the person said no"),
    (NotFound("no such thing"), ServiceLacks, "cannot .*: no such thing"),
    (Stopping("closed"), ServiceGone, "went away"),
    (Failed(""), ServiceRefused, "it does not say why"),
]


@kinds
@pytest.mark.parametrize(("error", "failure", "text"), ERRORS)
async def test_an_error_for_an_answer(
    kind: str, error: Exception, failure: type[ServiceFailure], text: str
) -> None:
    call, manner_of, _ = KINDS[kind]
    offer = an_offer()
    manner_of(offer).error = error
    if kind == "write" and failure is ServiceLacks:
        assert not await write_text(LiveOffer(offer), "/w/a", "text")
        return
    with pytest.raises(failure, match=text) as caught:
        await call(LiveOffer(offer))
    assert isinstance(caught.value, ExecutorError), "tools tell it to the model"
    assert "Zed" in str(caught.value)


async def test_a_fault_of_ours_is_logged_and_told(caplog: pytest.LogCaptureFixture) -> None:
    offer = an_offer()
    KINDS["read"][1](offer).error = OSError("bad file descriptor")
    with caplog.at_level(logging.ERROR), pytest.raises(ServiceRefused, match="OSError: bad file"):
        await read(LiveOffer(offer))
    assert "OSError" in caplog.text


async def test_an_answer_that_comes_with_the_end_of_the_offer_counts() -> None:
    live = LiveOffer(an_offer())

    async def work() -> str:
        live.end()
        return "answer"

    assert await live.ask("work", 1, work) == "answer"


async def test_a_cancel_from_outside_passes(autojump_clock: MockClock) -> None:
    offer = an_offer()
    live = LiveOffer(offer)
    offer_manner = KINDS["tool"][1](offer)
    offer_manner.silent = True
    with trio.move_on_after(5) as scope:
        await run(live)
    assert scope.cancelled_caught
    assert offer_manner.cancelled == ["run deploy"]


async def test_a_name_is_one_short_clean_line() -> None:
    assert LiveOffer(Offer("  Zed\x1b[31m\n2 ")).client == "Zed␛[31m 2"
    assert len(LiveOffer(Offer("x" * 999)).client) == limits.CLIENT_NAME_CHARS_MAX
    assert LiveOffer(Offer(" ")).client == "a client"


def test_the_newest_offer_of_each_service_wins() -> None:
    services = Services()
    assert len(services) == 0
    with services.offer(Offer("one", files=FakeFiles(), terminals=FakeTerminals())):
        with services.offer(Offer("two", files=FakeFiles(), writes=False)):
            assert services.clients == ("one", "two")
            assert named(services) == ("two", "one", "one")
            with services.offer(Offer("three", files=FakeFiles(), reads=False)):
                assert named(services) == ("two", "three", "one")
        assert named(services) == ("one", "one", "one")
    assert named(services) == (None, None, None)
    assert len(services) == 0


def named(services: Services) -> tuple[str | None, ...]:
    found = (services.reader, services.writer, services.terminals)
    return tuple(None if live is None else live.client for live in found)


def test_offers_are_bounded() -> None:
    services = Services()
    open_offers = [Connection(services, Offer("c")) for _ in range(limits.OFFERS_MAX)]
    with pytest.raises(Overloaded, match="32 offers"):
        Connection(services, Offer("c"))
    open_offers[0].close()
    Connection(services, Offer("c"))


async def ask(services: Services) -> tuple[str | None, str]:
    found = await services.elicit("q1", "Which one?", ("a", "b"))
    return found.answer, found.client


async def test_a_question_waits_for_its_answer_without_a_deadline(
    autojump_clock: MockClock,
) -> None:
    services, elicitor = Services(), FakeElicitor("a")
    with services.offer(Offer("Zed", elicitor=elicitor)):
        assert await ask(services) == ("a", "Zed")
        elicitor.reply = None
        assert await ask(services) == (None, "Zed")
        elicitor.manner.silent = True
        with trio.move_on_after(7 * 24 * 3600) as week:
            await ask(services)
        assert week.cancelled_caught
        assert elicitor.manner.cancelled == ["Which one?"], "the question is taken back"


@pytest.mark.parametrize("error", [Malformed("no"), Refused("no"), None])
async def test_a_question_goes_to_the_next_client(
    error: Exception | None, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    services, first, second = Services(), FakeElicitor("first"), FakeElicitor("second")
    answers: list[Any] = []

    async def asks() -> None:
        answers.append(await ask(services))

    with services.offer(Offer("one", elicitor=first)):
        newer = Connection(services, Offer("two", elicitor=second))
        second.manner.error, second.manner.silent = error, error is None
        nursery.start_soon(asks)
        await second.manner.news.wait()
        if error is None:
            newer.close()
        await wait_all_tasks_blocked()
    assert answers == [("first", "one")]


async def test_a_question_without_a_client_waits_for_one(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    services, deaf = Services(), FakeElicitor()
    deaf.manner.error = Refused("no screen")
    answers: list[Any] = []

    async def asks() -> None:
        answers.append(await ask(services))

    with services.offer(Offer("deaf", elicitor=deaf)):
        nursery.start_soon(asks)
        await wait_all_tasks_blocked()
        with services.offer(Offer("no person")):
            await wait_all_tasks_blocked()
        assert len(deaf.manner.asked) == 1, "a client that cannot is asked once"
        with services.offer(Offer("Zed", elicitor=FakeElicitor("b"))):
            await wait_all_tasks_blocked()
    assert answers == [("b", "Zed")]


async def test_a_file_that_holds_what_no_file_can_is_garbage() -> None:
    live = LiveOffer(Offer("Zed", files=FakeFiles({"/w/a": "\ud800"})))
    with pytest.raises(ServiceGarbled, match="characters that no file can hold"):
        await read_text(live, "/w/a")
