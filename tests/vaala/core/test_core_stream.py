"""The event stream: snapshot plus frames is the state, whatever the reader's pace."""

from __future__ import annotations

from random import Random

import pytest
import trio

from tests.vaala.core.seeds import run_seeds
from tests.vaala.core.talk import Talk
from vaala import limits
from vaala.stream import EventStream, Subscription
from vaala.testing.projection import Gap, Projection
from vaala_protocol.events import (
    CommandOutput,
    Frame,
    ItemChanged,
    ItemDelta,
    SessionClosed,
    WaitsChanged,
)
from vaala_protocol.items import AssistantMessage
from vaala_protocol.state import ConversationInfo, Snapshot, Wait


async def _follow(subscription: Subscription, random: Random, pace_s: float) -> Projection:
    projection = Projection()
    async for update in subscription:
        projection.apply(update)
        if random.random() < 0.2:
            await trio.sleep(pace_s)
    return projection


def test_snapshot_and_frames_give_the_state_of_a_later_snapshot(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "SUBSCRIPTION_FRAMES_MAX", 40)  # overflows are frequent

    async def test(random: Random) -> None:
        talk = Talk(random)
        seen: list[Projection] = []

        async def client(after_s: float, pace_s: float) -> None:
            await trio.sleep(after_s)
            with talk.stream.subscribe(talk.snapshot) as subscription:
                seen.append(await _follow(subscription, random, pace_s))

        async with trio.open_nursery() as nursery:
            for pace_s in (0, 0.01, 0.2, 2):
                nursery.start_soon(client, random.choice((0, 0.1, 0.5)), pace_s)
            async with trio.open_nursery() as workers:
                for _ in range(3):
                    workers.start_soon(talk.live, 60)
            await trio.sleep(1)
            talk.stream.close()
        assert [projection.state for projection in seen] == [talk.snapshot()] * 4

    run_seeds(test, 60)


def _delta(index: int, text: str, item: str = "i") -> ItemDelta:
    return ItemDelta(session_id="s", item_id=item, field="text", index=index, text=text)


def _empty(stream: EventStream) -> Snapshot:
    info = ConversationInfo(id="c", created_at=1, updated_at=1)
    return Snapshot(epoch=stream.epoch, seq=stream.seq, conversation=info, sessions=())


def test_deltas_of_one_item_are_merged_and_cover_their_range() -> None:
    stream = EventStream()
    stream.publish(_delta(0, "before"))
    with stream.subscribe(lambda: _empty(stream)) as subscription:
        assert subscription.next_nowait() == _empty(stream)
        index = 0
        for text in ("a", "bc", "\U0001f600"):
            stream.publish(_delta(index, text))
            index += len(text)
        stream.publish(_delta(0, "other", "j"))
        stream.publish(CommandOutput(session_id="s", command_id="c", index=0, text="out"))
        stream.publish(CommandOutput(session_id="s", command_id="c", index=3, text="put"))
        frames = _drain(subscription)
    assert [(frame.first, frame.seq) for frame in frames] == [(2, 4), (5, 5), (6, 7)]
    assert frames[0].event == _delta(0, "abc\U0001f600")
    assert frames[2].event == CommandOutput(session_id="s", command_id="c", index=0, text="output")
    assert {frame.epoch for frame in frames} == {stream.epoch}


def _drain(subscription: Subscription) -> list[Frame]:
    frames: list[Frame] = []
    while (update := subscription.next_nowait()) is not None:
        assert isinstance(update, Frame)
        frames.append(update)
    return frames


def test_of_lists_of_waits_that_follow_each_other_the_last_one_is_told() -> None:
    stream = EventStream()
    with stream.subscribe(lambda: _empty(stream)) as subscription:
        subscription.next_nowait()
        for reason in ("first byte", "the answer", ""):
            stream.publish(_waits(reason))
        stream.publish(_waits("another session", "t"))
        stream.publish(_delta(0, "between", "j"))
        stream.publish(_waits("a tool"))
        frames = _drain(subscription)
    assert [(frame.first, frame.seq) for frame in frames] == [(1, 3), (4, 4), (5, 5), (6, 6)]
    assert frames[0].event == _waits("")


def _waits(reason: str, session_id: str = "s") -> WaitsChanged:
    waits = (Wait(subject="model", reason=reason, since=1),) if reason else ()
    return WaitsChanged(session_id=session_id, waits=waits)


def test_merged_deltas_are_bounded_and_lose_nothing() -> None:
    stream = EventStream()
    with stream.subscribe(lambda: _empty(stream)) as subscription:
        subscription.next_nowait()
        pieces = ["x" * 1_000] * 100
        for number, piece in enumerate(pieces):
            stream.publish(_delta(number * 1_000, piece))
        frames = _drain(subscription)
    texts = [frame.event.text for frame in frames if isinstance(frame.event, ItemDelta)]
    assert "".join(texts) == "".join(pieces)
    assert max(map(len, texts)) <= limits.MERGED_DELTA_CHARACTERS_MAX + 1_000
    assert [frame.first for frame in frames[1:]] == [frame.seq + 1 for frame in frames[:-1]]


@pytest.mark.parametrize("what", ["frames", "text"])
def test_a_slow_reader_gets_a_snapshot_instead_of_silence(what: str) -> None:
    stream = EventStream()
    with stream.subscribe(lambda: _empty(stream)) as subscription:
        subscription.next_nowait()
        if what == "frames":
            for number in range(limits.SUBSCRIPTION_FRAMES_MAX + 1):
                stream.publish(SessionClosed(session_id=str(number)))
        else:
            for number in range(limits.SUBSCRIPTION_CHARACTERS_MAX // 500_000 + 1):
                big = AssistantMessage(id=str(number), at=number, created_at=1, text="x" * 500_000)
                stream.publish(ItemChanged(item=big))
        stream.publish(SessionClosed(session_id="one more"))
        assert subscription.next_nowait() == _empty(stream)
        assert subscription.next_nowait() is None
        stream.publish(SessionClosed(session_id="after it"))
        assert [frame.first for frame in _drain(subscription)] == [stream.seq]


async def test_a_cancelled_read_loses_nothing() -> None:
    stream = EventStream()
    with stream.subscribe(lambda: _empty(stream)) as subscription:
        await anext(subscription)
        stream.publish(SessionClosed(session_id="1"))
        with trio.CancelScope() as scope:
            scope.cancel()
            await anext(subscription)
        assert scope.cancelled_caught
        update = await anext(subscription)
        assert isinstance(update, Frame)
        assert update.seq == 1


async def test_a_closed_stream_ends_every_subscription_also_later_ones() -> None:
    stream = EventStream()
    with stream.subscribe(lambda: _empty(stream)) as early:
        await anext(early)
        stream.publish(SessionClosed(session_id="1"))
        stream.close()
        assert len([update async for update in early]) == 1
    with stream.subscribe(lambda: _empty(stream)) as late:
        assert [update async for update in late] == [_empty(stream)]


def test_a_stream_without_subscribers_still_counts() -> None:
    stream = EventStream()
    assert not stream.watched
    stream.publish(SessionClosed(session_id="1"))
    assert stream.seq == 1
    with stream.subscribe(lambda: _empty(stream)):
        assert stream.watched
    assert not stream.watched


def test_a_projection_tells_a_gap() -> None:
    stream = EventStream()
    projection = Projection()
    frame = Frame(epoch=stream.epoch, first=2, seq=2, event=SessionClosed(session_id="1"))
    with pytest.raises(Gap, match="no snapshot"):
        projection.apply(frame)
    projection.apply(_empty(stream))
    with pytest.raises(Gap, match="frame 2"):
        projection.apply(frame)
    other = Frame(epoch="other", first=1, seq=1, event=SessionClosed(session_id="1"))
    with pytest.raises(Gap, match="other"):
        projection.apply(other)
