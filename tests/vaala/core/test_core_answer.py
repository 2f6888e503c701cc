"""From a model's events to items: in order, bounded, kept when the stream breaks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from time import process_time

import pytest
import trio

from tests.vaala.core.chat import chat_model
from vaala import limits
from vaala.agent.answer import AnswerBuilder, Place, stream_answer
from vaala.live import LiveParts
from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Deadlines,
    Finish,
    FirstByte,
    Message,
    Model,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.stream import EventStream
from vaala.text import json_bytes
from vaala.waits import Waits
from vaala_protocol.events import Event, ItemChanged, ItemDelta, ItemDropped
from vaala_protocol.items import AssistantMessage, Item, Reasoning, ToolCall
from vaala_protocol.settings import Usage
from vaala_protocol.state import Wait


class Building:
    """A builder, and everything that it publishes."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.live = LiveParts("s", self.events.append)
        self._at = 0
        self.builder = AnswerBuilder(chat_model(), Place("s", "turn", 1, self._next_at), self.live)

    def _next_at(self) -> int:
        self._at += 1
        return self._at

    def take(self, *events: ModelEvent) -> None:
        for event in events:
            self.builder.take(event)


def _said(items: Sequence[Item]) -> list[tuple[str, str]]:
    return [
        (type(item).__name__, item.text)
        for item in items
        if isinstance(item, AssistantMessage | Reasoning)
    ]


def test_reasoning_text_and_calls_interleave_in_order_of_appearance() -> None:
    building = Building()
    building.take(
        ReasoningDelta("I "), ReasoningDelta("think"), TextDelta("First"), CallStart(1, "b"),
        CallStart(0, "a"), CallDelta(1, '{"x"'), CallDelta(0, "{}"), TextDelta("then"),
        CallDelta(1, ":1}"), CallEnd(0, "{}"), CallEnd(1, '{"x":1}'), ReasoningDelta("more"),
        UsageReport(Usage(input=1)), UsageReport(Usage(input=5, output=2)), Finish("tool_calls"),
    )  # fmt: skip
    answer = building.builder.answer(partial=False)
    assert _said(answer.items) == [
        ("Reasoning", "I think"), ("AssistantMessage", "First"), ("AssistantMessage", "then"),
        ("Reasoning", "more"),
    ]  # fmt: skip
    assert [(one.name, one.arguments) for one in answer.calls] == [("a", "{}"), ("b", '{"x":1}')]
    places = [item.at for item in (*answer.items, *answer.calls)]
    assert sorted(places) == [1, 2, 3, 4, 5, 6]
    assert answer.usage == Usage(input=5, output=2)
    assert answer.finish == Finish("tool_calls")


def test_what_was_shown_is_what_is_kept() -> None:
    building = Building()
    building.take(TextDelta("He"), TextDelta("llo \ud800"), CallStart(0, "a"), CallDelta(0, "{}"))
    building.take(CallEnd(0, "{}"), Finish("stop"))
    shown: dict[str, str] = {}
    for event in building.events:
        match event:
            case ItemChanged(item=item, live=True):
                shown[item.id] = ""
            case ItemDelta(item_id=item_id, index=index, text=text):
                assert index == len(shown[item_id])
                shown[item_id] += text
            case _:
                pytest.fail(f"{event!r}")
    answer = building.builder.answer(partial=False)
    assert list(shown.values()) == ["Hello \ufffd", "{}"]
    assert [item.id for item in (*answer.items, *answer.calls)] == list(shown)


def test_a_broken_stream_leaves_what_came_marked_partial() -> None:  # A2-1
    building = Building()
    building.take(TextDelta("Let me "), CallStart(0, "write_file"))
    building.take(CallDelta(0, '{"path":"a.txt","content":"hel'))
    answer = building.builder.answer(partial=True)
    assert answer.finish is None
    [one] = answer.calls
    assert one.arguments == '{"path":"a.txt","content":"hel', "kept to be looked at"
    building.take(TextDelta("cut he"))
    last = building.builder.answer(partial=True).items[-1]
    assert isinstance(last, AssistantMessage)
    assert (last.text, last.partial) == ("cut he", True)


def test_a_dropped_answer_is_taken_back_and_empty() -> None:
    building = Building()
    building.take(ReasoningDelta("hm"), TextDelta("Hel"), CallStart(0, "a"), CallDelta(0, "{"))
    building.take(ProviderBlob("message", {"id": "x"}))
    building.builder.drop()
    shown = [event.item.id for event in building.events if isinstance(event, ItemChanged)]
    dropped = [event.item_id for event in building.events if isinstance(event, ItemDropped)]
    assert sorted(shown) == sorted(dropped)
    assert building.live.snapshot() == ()
    answer = building.builder.answer(partial=True)
    assert (answer.items, answer.calls) == ([], [])


def test_opaque_data_goes_to_the_last_item_of_its_kind() -> None:  # A7-2
    building = Building()
    building.take(
        TextDelta("one"), ReasoningDelta("two"), TextDelta("three"), CallStart(0, "a"),
        CallEnd(0, "{}"), ProviderBlob("message", {"m": 1}), ProviderBlob("reasoning", {"r": 2}),
        ProviderBlob(0, {"c": 3}), Finish("stop"),
    )  # fmt: skip
    answer = building.builder.answer(partial=False)
    kept = [item.private for item in answer.items if isinstance(item, AssistantMessage | Reasoning)]
    assert [private and private.data for private in kept] == [None, {"r": 2}, {"m": 1}]
    [one] = answer.calls
    assert one.private is not None
    assert one.private.data == {"c": 3}
    assert (one.private.provider, one.private.api, one.private.model) == (
        "local", "chat", "local/small",
    )  # fmt: skip


@pytest.mark.parametrize(
    "piece",
    ["word " * 20, "\1" * 70, "\U0001f600" * 50, "x" * 2_000_000],
    ids=["words", "escapes", "wide", "at once"],
)
def test_a_text_without_end_is_cut_and_says_so(piece: str) -> None:
    building = Building()
    total = 0
    while total < 2_000_000:
        building.take(TextDelta(piece))
        total += len(piece)
    [item] = building.builder.answer(partial=False).items
    assert isinstance(item, AssistantMessage)
    kept, note = item.text.split("\n… ")
    assert note == f"{total - len(kept)} characters left out …"
    assert limits.ANSWER_BYTES_MAX - 2_000 < json_bytes(kept) <= limits.ANSWER_BYTES_MAX


def test_an_answer_that_changes_its_kind_for_ever_is_bounded_too() -> None:
    building = Building()
    for _ in range(20_000):
        building.take(TextDelta("a"), ReasoningDelta("b"))
    items = building.builder.answer(partial=False).items
    assert len(items) < 2 * limits.ANSWER_BYTES_MAX / 256
    said = sum(len(item.text) for item in items if isinstance(item, AssistantMessage))
    notes = [text for _, text in _said(items) if "left out" in text]
    assert len(notes) == 2
    assert said < 20_000


def test_arguments_without_end_are_cut_to_what_is_no_json() -> None:
    building = Building()
    building.take(CallStart(0, "write"))
    arguments = '{"content":"' + "\\n" * 400_000 + '"}'
    for at in range(0, len(arguments), 1_000):
        building.take(CallDelta(0, arguments[at : at + 1_000]))
    building.take(CallEnd(0, arguments), Finish("tool_calls"))
    [one] = building.builder.answer(partial=False).calls
    assert arguments.startswith(one.arguments)
    assert json_bytes(one.arguments) <= limits.ARGUMENTS_BYTES_MAX
    assert len(building.live.text(one.id)) <= limits.ARGUMENTS_BYTES_MAX


def test_an_answer_costs_in_proportion_to_its_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten times the deltas cost about ten times as much, with a reader that does not read."""
    monkeypatch.setattr(limits, "SUBSCRIPTION_FRAMES_MAX", 1 << 30)

    def cost(deltas: int) -> float:
        stream = EventStream()
        live = LiveParts("s", stream.publish)
        builder = AnswerBuilder(chat_model(), Place("s", "t", 1, lambda: 1), live)
        with stream.subscribe(lambda: pytest.fail("never read")) as subscription:
            subscription._behind = False
            began = process_time()
            for _ in range(deltas):
                builder.take(TextDelta("word "))
            [item] = builder.answer(partial=False).items
            assert isinstance(item, AssistantMessage)
            assert item.text.startswith("word " * min(deltas, 100_000))
            return process_time() - began

    small = min(cost(10_000) for _ in range(3))
    assert cost(100_000) < 30 * small, "quadratic would be 100 times"


class Played(Model):
    """Plays events; an exception among them is raised."""

    def __init__(self, *events: ModelEvent | Exception, pause_s: float = 0) -> None:
        self._events = events
        self._pause_s = pause_s
        self.closed = False

    @property
    def name(self) -> str:
        return "played"

    @property
    def provider(self) -> str:
        return "played"

    @property
    def api(self) -> str:
        return "played"

    @property
    def window_tokens(self) -> int | None:
        return None

    @property
    def deadlines(self) -> Deadlines:
        return Deadlines(first_byte_s=60)

    def encode(self, messages: Sequence[Message]) -> bytes:
        raise NotImplementedError

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        try:
            yield self._play()
        finally:
            self.closed = True

    async def _play(self) -> AsyncGenerator[ModelEvent]:
        for event in self._events:
            await trio.sleep(self._pause_s)
            if isinstance(event, Exception):
                raise event
            yield event


REQUEST = ModelRequest("", (), b"", ())


def answered() -> None:
    """Nobody waits for that."""


async def test_waits_tell_what_an_answer_waits_for(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    told: list[tuple[Wait, ...]] = []
    model = Played(FirstByte(), TextDelta("hi"), Finish("stop"), pause_s=5)
    building = Building()
    await stream_answer(model, REQUEST, building.builder, Waits(told.append), answered)
    assert [[wait.reason for wait in waits] for waits in told] == [
        ["first byte of the answer"], [], ["the answer is coming"], [],
    ]  # fmt: skip
    first = told[0][0]
    assert first.subject == "played"
    assert first.deadline_at == first.since + 60_000
    assert model.closed


async def test_a_stream_without_its_terminal_event_is_incomplete() -> None:
    building = Building()
    model = Played(TextDelta("Hel"))
    with pytest.raises(ModelFailure) as failure:
        await stream_answer(model, REQUEST, building.builder, Waits(lambda _: None), answered)
    assert (failure.value.kind, failure.value.retryable) == ("incomplete", True)
    assert _said(building.builder.answer(partial=True).items) == [("AssistantMessage", "Hel")]


@pytest.mark.parametrize("how", ["failure", "cancel"])
async def test_a_stream_that_breaks_or_is_cancelled_leaves_what_came(
    autojump_clock: trio.testing.MockClock, how: str
) -> None:
    building = Building()
    waits = Waits(lambda _: None)
    failure = ModelFailure("network", "reset", retryable=True)
    model = Played(TextDelta("Hel"), TextDelta("lo"), failure, pause_s=1)
    if how == "failure":
        with pytest.raises(ModelFailure, match="reset"):
            await stream_answer(model, REQUEST, building.builder, waits, answered)
    else:
        with trio.move_on_after(2.5) as scope:
            await stream_answer(model, REQUEST, building.builder, waits, answered)
        assert scope.cancelled_caught
    assert model.closed
    assert waits.snapshot() == ()
    [item] = building.builder.answer(partial=True).items
    assert isinstance(item, AssistantMessage)
    assert (item.text, item.partial) == ("Hello", True)


def test_a_call_is_our_own_item_with_a_name_that_can_be_shown() -> None:
    building = Building()
    building.take(CallStart(0, "read\0" + "x" * 500), CallEnd(0, ""), Finish("tool_calls"))
    [one] = building.builder.answer(partial=False).calls
    assert isinstance(one, ToolCall)
    assert one.name.startswith("read\ufffdx")
    assert len(one.name) == 200
    assert (one.state, one.arguments, one.completed_at) == ("waiting", "", None)
