"""Readers that drop and return: from where they were, or by a snapshot; never a gap or a repeat."""

from __future__ import annotations

from random import Random

import pytest
import trio

from tests.vaala.core.seeds import run_seeds
from tests.vaala.core.talk import Talk
from vaala import limits
from vaala.stream import EventStream, Published, QueueBudget, Reading, Subscription
from vaala.testing.projection import Projection
from vaala_protocol.events import Frame, ItemChanged, ItemDelta, SessionClosed
from vaala_protocol.items import AssistantMessage
from vaala_protocol.methods.conversation import Position
from vaala_protocol.state import ConversationInfo, Snapshot


class Returning:
    """A client that drops its subscription at random, and goes on with what it knows."""

    def __init__(self, talk: Talk, random: Random) -> None:
        self.talk = talk
        self.random = random
        self.known = Projection()
        self.position: Position | None = None
        self.resumed = 0
        self.snapshots = 0
        self.ended = False

    async def visit(self) -> None:
        """Subscribe once and read for a while; a repeat or a gap raises."""
        stream = self.talk.stream
        with stream.subscribe(self.talk.snapshot, after=self.position) as subscription:
            self.resumed += subscription.resumed
            with trio.move_on_after(self.random.choice((0, 0, 0.01, 0.05, 1))):
                async for update in subscription:
                    self._take(update, subscription)
                    if self.random.random() < 0.1:
                        await trio.sleep(0.02)
                self.ended = True

    def _take(self, update: Snapshot | Frame, subscription: Subscription) -> None:
        if isinstance(update, Snapshot):
            assert not subscription.resumed
            self.snapshots += 1
        self.known.apply(update)
        self.position = Position(epoch=update.epoch, seq=update.seq)


def test_a_client_that_returns_again_and_again_misses_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """H1-1, H1-2, H1-4: short rings and long absences, dropped in the middle of streamed text."""
    monkeypatch.setattr(limits, "RING_FRAMES_MAX", 60)
    visits = snapshots = resumed = 0

    async def test(random: Random) -> None:
        nonlocal visits, snapshots, resumed
        talk = Talk(random)
        clients = [Returning(talk, random) for _ in range(3)]

        async def follow(client: Returning) -> None:
            nonlocal visits
            while not client.ended:
                visits += 1
                await client.visit()
                await trio.sleep(random.choice((0, 0, 0.01, 0.3)))

        async with trio.open_nursery() as nursery:
            for client in clients:
                nursery.start_soon(follow, client)
            async with trio.open_nursery() as workers:
                for _ in range(3):
                    workers.start_soon(talk.live, 60)
            await trio.sleep(2)
            talk.stream.close()
        assert [client.known.state for client in clients] == [talk.snapshot()] * 3
        snapshots += sum(client.snapshots for client in clients)
        resumed += sum(client.resumed for client in clients)

    run_seeds(test, 60)
    assert resumed > visits / 3
    assert snapshots > 60 * 3  # each begins with one, and some find the ring too short


def _delta(index: int, text: str) -> ItemDelta:
    return ItemDelta(session_id="s", item_id="i", field="text", index=index, text=text)


class Watched:
    """A stream, with the number of snapshots that were taken of it."""

    def __init__(self) -> None:
        self.stream = EventStream()
        self.snapshots = 0

    def snapshot(self) -> Snapshot:
        self.snapshots += 1
        info = ConversationInfo(id="c", created_at=1, updated_at=1)
        return Snapshot(
            epoch=self.stream.epoch, seq=self.stream.seq, conversation=info, sessions=()
        )

    def say(self, times: int = 1) -> None:
        for _ in range(times):
            self.stream.publish(SessionClosed(session_id=str(self.stream.seq)))

    def at(self, seq: int, epoch: str | None = None) -> Position:
        return Position(epoch=epoch or self.stream.epoch, seq=seq)

    def frames_after(self, seq: int) -> list[int] | None:
        """Return the numbers that a reader gets that returns; None: it gets a snapshot."""
        with self.stream.subscribe(self.snapshot, after=self.at(seq)) as subscription:
            found = drain(subscription)
            if not subscription.resumed:
                assert isinstance(found[0], Snapshot)
                return None
            return [update.seq for update in found]


def drain(subscription: Subscription) -> list[Snapshot | Frame]:
    found: list[Snapshot | Frame] = []
    while (update := subscription.next_nowait()) is not None:
        found.append(update)
    return found


def test_a_position_of_an_earlier_opening_gets_a_snapshot() -> None:
    """H1-3."""
    one = Watched()
    with one.stream.subscribe(one.snapshot):
        one.say(3)
        position = one.at(2, epoch="an earlier one")
        with one.stream.subscribe(one.snapshot, after=position) as again:
            assert not again.resumed
            assert isinstance(again.next_nowait(), Snapshot)
        ahead = one.at(4)  # of a run that had come further before it was lost
        with one.stream.subscribe(one.snapshot, after=ahead) as again:
            assert not again.resumed


def test_a_position_is_good_as_long_as_all_behind_it_is_there() -> None:
    """H1-2."""
    one = Watched()
    one.say(5)
    with one.stream.subscribe(one.snapshot):
        one.say(limits.RING_FRAMES_MAX)
        assert one.frames_after(4) is None
        assert one.frames_after(5) == list(range(6, one.stream.seq + 1))
        one.say()
        assert one.frames_after(5) is None
        assert one.frames_after(6) == list(range(7, one.stream.seq + 1))
        assert one.frames_after(one.stream.seq) == []


def test_nothing_needs_to_be_kept_for_one_who_knows_all() -> None:
    one = Watched()
    one.say(5)
    assert one.frames_after(5) == []
    assert one.frames_after(4) is None
    assert one.snapshots == 1


def test_kept_text_is_bounded() -> None:
    one = Watched()
    with one.stream.subscribe(one.snapshot):
        piece = "x" * 1_000
        count = 2 * limits.RING_CHARACTERS_MAX // len(piece)
        for number in range(count):
            one.stream.publish(_delta(number * len(piece), piece))
        kept = limits.RING_CHARACTERS_MAX // (len(piece) + limits.FRAME_CHARACTERS)
        assert one.frames_after(one.stream.seq - kept - 1) is None
        with one.stream.subscribe(one.snapshot, after=one.at(one.stream.seq - kept)) as again:
            updates = drain(again)
        texts = [
            update.event.text
            for update in updates
            if isinstance(update, Frame) and isinstance(update.event, ItemDelta)
        ]
        assert "".join(texts) == piece * kept
        assert len(texts) < kept / 10  # merged on the way


def test_many_reconnects_cost_what_is_new() -> None:
    """H1-5: 200 reconnects during one turn; snapshots apart from the first would be the whole."""
    one = Watched()
    position = None
    read = 0
    for round in range(200):
        with one.stream.subscribe(one.snapshot, after=position) as subscription:
            for _ in range(10):
                one.stream.publish(_delta(one.stream.seq, "x"))
            for update in drain(subscription):
                position = one.at(update.seq)
                if isinstance(update, Frame):
                    assert isinstance(update.event, ItemDelta)
                    read += len(update.event.text)
        if round == 0:
            read = 10  # its snapshot was made after them
    assert one.snapshots == 1
    assert read == one.stream.seq == 2_000


def test_what_nobody_watches_is_forgotten_after_a_while() -> None:
    one = Watched()
    with one.stream.subscribe(one.snapshot):
        one.say(3)
    one.stream.tick(100.0)
    one.stream.tick(100.0 + limits.RING_KEPT_S - 1)
    assert one.frames_after(1) == [2, 3]
    one.stream.tick(1000.0)  # begins anew: somebody has looked in between
    one.stream.tick(1000.0 + limits.RING_KEPT_S - 1)
    assert one.frames_after(1) == [2, 3]
    one.stream.tick(2000.0)
    one.stream.tick(2000.0 + limits.RING_KEPT_S)
    assert one.frames_after(1) is None


def test_readers_in_step_share_frames_and_what_they_become() -> None:
    """H2-3: fifty readers, one encoding for each event, merged ones included."""
    one = Watched()
    with one.stream.subscribe(one.snapshot) as first:
        others = [one.stream.subscribe(one.snapshot) for _ in range(49)]
        readers = [first, *(other.__enter__() for other in others)]
        for reader in readers:
            assert isinstance(reader.next_published_nowait(), Snapshot)
        one.say()
        for index in range(100):
            one.stream.publish(_delta(index, "x"))
        encodings = 0
        for reader in readers:
            while (published := reader.next_published_nowait()) is not None:
                assert isinstance(published, Published)
                if published.wire is None:
                    encodings += 1
                    published.wire = str(published.frame).encode()
                assert published.wire == str(published.frame).encode()
        assert encodings == 2
        for other in others:
            other.__exit__(None, None, None)


def test_a_reader_in_the_middle_of_a_merge_has_its_own_frame() -> None:
    one = Watched()
    with (
        one.stream.subscribe(one.snapshot) as early,
        one.stream.subscribe(one.snapshot) as late,
    ):
        early.next_nowait()
        one.stream.publish(_delta(0, "a"))
        late.next_nowait()
        one.stream.publish(_delta(1, "b"))
        (merged,) = drain(early)
        (alone,) = drain(late)
        assert isinstance(merged, Frame)
        assert isinstance(alone, Frame)
        assert (merged.first, merged.seq, merged.event) == (1, 2, _delta(0, "ab"))
        assert (alone.first, alone.seq, alone.event) == (2, 2, _delta(1, "b"))


def test_a_reader_is_called_once_until_it_has_read_all() -> None:
    one = Watched()
    calls: list[int] = []
    reading = Reading(on_ready=lambda: calls.append(one.stream.seq))
    with one.stream.subscribe(one.snapshot, reading=reading) as subscription:
        one.say()
        assert calls == []  # nothing was read: it knows that there is something
        assert isinstance(subscription.next_nowait(), Snapshot)
        one.say()
        assert calls == []
        assert isinstance(subscription.next_nowait(), Frame)
        assert subscription.next_nowait() is None
        one.say(3)
        assert calls == [3]
        assert len(drain(subscription)) == 3
        one.stream.close("deleted")
        assert calls == [3, 5]
        assert subscription.ended
        assert subscription.reason == "deleted"


def test_a_closed_subscription_ends_when_all_was_read() -> None:
    one = Watched()
    with one.stream.subscribe(one.snapshot) as subscription:
        subscription.next_nowait()
        one.say()
        one.stream.close("crashed")
        assert not subscription.ended
        drain(subscription)
        assert subscription.ended
        assert subscription.reason == "crashed"


def _text(number: int, characters: int) -> ItemChanged:
    text = "x" * characters
    return ItemChanged(item=AssistantMessage(id=str(number), at=1, created_at=1, text=text))


def test_the_queues_of_one_client_are_bounded_together() -> None:
    """The subscription with the most loses its queue; the others keep theirs."""
    budget = QueueBudget(10_000)
    small, large, other = Watched(), Watched(), Watched()
    reading = Reading(budget)
    with (
        small.stream.subscribe(small.snapshot, reading=reading) as first,
        large.stream.subscribe(large.snapshot, reading=reading) as second,
        other.stream.subscribe(other.snapshot) as stranger,
    ):
        for subscription in (first, second, stranger):
            subscription.next_nowait()
        for number in range(3):
            large.stream.publish(_text(number, 2_000))
            other.stream.publish(_text(number, 5_000))
        small.stream.publish(_text(0, 2_000))
        assert budget.used == 4 * (2_000 + limits.FRAME_CHARACTERS)
        small.stream.publish(_text(1, 2_000))
        assert budget.used == 2 * (2_000 + limits.FRAME_CHARACTERS)
        assert [type(update) for update in drain(first)] == [Frame, Frame]
        assert [type(update) for update in drain(second)] == [Snapshot]
        assert [type(update) for update in drain(stranger)] == [Frame] * 3
        assert budget.used == 0
        large.stream.publish(_text(9, 100))
    assert budget.used == 0  # what was not read counts no more once the reader has gone


def test_what_was_missed_may_be_too_much_for_the_client() -> None:
    one = Watched()
    with one.stream.subscribe(one.snapshot):
        for number in range(10):
            one.stream.publish(_text(number, 2_000))
        reading = Reading(QueueBudget(10_000))
        with one.stream.subscribe(one.snapshot, after=one.at(0), reading=reading) as again:
            assert not again.resumed
            assert [type(update) for update in drain(again)] == [Snapshot]


def test_budgets_hold_whatever_happens() -> None:
    async def test(random: Random) -> None:
        budget = QueueBudget(4_000)
        talk = Talk(random)
        known: list[Projection] = []

        async def client(pace_s: float) -> None:
            projection = Projection()
            reading = Reading(budget)
            with talk.stream.subscribe(talk.snapshot, reading=reading) as subscription:
                async for update in subscription:
                    projection.apply(update)
                    assert budget.used <= 4_000
                    if random.random() < 0.3:
                        await trio.sleep(pace_s)
            known.append(projection)

        async with trio.open_nursery() as nursery:
            for pace_s in (0, 0.01, 0.5):
                nursery.start_soon(client, pace_s)
            await talk.live(80)
            await trio.sleep(1)
            talk.stream.close()
        assert [one.state for one in known] == [talk.snapshot()] * 3
        assert budget.used == 0

    run_seeds(test, 40)
