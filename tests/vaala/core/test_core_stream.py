"""The event stream: snapshot plus frames is the state, whatever the reader's pace."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
import trio

from tests.vaala.core.seeds import run_seeds
from vaala import limits
from vaala.changes import replace
from vaala.live import LiveParts
from vaala.stream import EventStream, Subscription
from vaala.testing.projection import Gap, Projection
from vaala.waits import Waits
from vaala_protocol.content import TextContent
from vaala_protocol.events import (
    CommandChanged,
    CommandOutput,
    ConversationChanged,
    Frame,
    InputChanged,
    ItemChanged,
    ItemDelta,
    SessionClosed,
    SessionOpened,
    SettingsChanged,
    TurnChanged,
    Unsaved,
    WaitsChanged,
)
from vaala_protocol.items import AssistantMessage, Item, Notice
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandInfo,
    ConversationInfo,
    InputInfo,
    SessionInfo,
    SessionSnapshot,
    Snapshot,
    TurnInfo,
    UserInput,
)


class Work:
    """A session whose every change is made and published as a session does it."""

    def __init__(self, stream: EventStream, number: int, random: Random) -> None:
        self.id = f"session {number}"
        self._stream = stream
        self._random = random
        self._number = 0
        self.info = SessionInfo(id=self.id, agent="a", created_at=1, settings=Settings())
        self.items: dict[str, Item] = {}
        self.live = LiveParts(self.id, stream.publish)
        self.waits = Waits(
            lambda waits: stream.publish(WaitsChanged(session_id=self.id, waits=waits))
        )
        self.queue: dict[str, InputInfo] = {}
        self.commands: dict[str, CommandInfo] = {}
        self.turn: TurnInfo | None = None
        self.unsaved: str | None = None
        stream.publish(SessionOpened(session=self.snapshot()))

    def snapshot(self) -> SessionSnapshot:
        items = sorted(self.items.values(), key=lambda item: item.at)
        return SessionSnapshot(
            info=self.info,
            settings=self.info.settings,
            items=tuple(items[-limits.SNAPSHOT_ITEMS_MAX :]),
            turn=self.turn,
            live=self.live.snapshot(),
            queue=tuple(sorted(self.queue.values(), key=lambda waiting: waiting.place)),
            commands=tuple(self.commands.values()),
            waits=self.waits.snapshot(),
            unsaved=self.unsaved,
        )

    async def change(self) -> None:
        """Make one change; some have others inside them and take time."""
        self._number += 1
        name = f"{self.id}, {self._number}"
        changes: list[Callable[[], None]] = [
            self._item, self._again, self._input, self._command, self._turn, self._settings,
        ]  # fmt: skip
        choice = self._random.randrange(10)
        if choice < 2:
            await self._answer(name)
        elif choice == 2:
            with self.waits.on(name, "a reason"):
                await trio.sleep(self._random.choice((0, 0.1)))
        else:
            self._random.choice(changes)()

    def _publish_item(self, item: Item) -> None:
        self.items[item.id] = item
        self.live.end(item.id)
        self._stream.publish(ItemChanged(item=item))

    def _item(self) -> None:
        name = f"{self.id}, {self._number}"
        at = self._number
        new = Notice(id=name, at=at, created_at=1, session_id=self.id, level="info", text="new")
        self._publish_item(new)

    def _again(self) -> None:
        newest = sorted(self.items.values(), key=lambda item: item.at)[-3:]
        if newest:
            old = self._random.choice(newest)
            self._publish_item(replace(old, rev=old.rev + 1, completed_at=self._number))

    async def _answer(self, name: str) -> None:
        """Stream an item while other changes go on; keep it, or take it back."""
        item = AssistantMessage(id=name, at=self._number, created_at=1, session_id=self.id)
        self.live.show(item, "text")
        for _ in range(self._random.choice((0, 1, 5, 20))):
            self.live.add(name, self._random.choice(("a", "bc", "\U0001f600", "")))
            if self._random.random() < 0.3:
                await trio.lowlevel.checkpoint()
        if self._random.random() < 0.3:
            self.live.drop(name)
        else:
            self._publish_item(replace(item, text=self.live.text(name)))

    def _input(self) -> None:
        waiting = InputInfo(
            id=f"input {self._random.randrange(6)}", client_id="c", created_at=1,
            source=UserInput(content=(TextContent(text="x"),)), place=self._number,
            state=self._random.choice(("waiting", "held", "consumed", "withdrawn")),
        )  # fmt: skip
        self.queue.pop(waiting.id, None)
        if waiting.state in ("waiting", "held"):
            self.queue[waiting.id] = waiting
        self._stream.publish(InputChanged(session_id=self.id, input=waiting))

    def _command(self) -> None:
        command = CommandInfo(
            id=f"command {self._random.randrange(3)}", session_id=self.id, tool_call_id="c",
            command="sleep", cwd="/", started_at=1,
        )  # fmt: skip
        ended = command.id in self.commands
        if ended:
            del self.commands[command.id]
        else:
            self.commands[command.id] = command
        self._stream.publish(CommandChanged(command=command, ended=ended))

    def _turn(self) -> None:
        self.turn = TurnInfo(
            id=f"turn {self._number}", state="running", started_at=1, settings=Settings(),
            instance="i",
        )  # fmt: skip
        self._stream.publish(TurnChanged(session_id=self.id, turn=self.turn))

    def _settings(self) -> None:
        settings = Settings(model=f"model {self._number}")
        self.info = replace(self.info, settings=settings)
        self._stream.publish(SettingsChanged(session_id=self.id, settings=settings))
        self.unsaved = self._random.choice((None, "the disk is full"))
        self._stream.publish(Unsaved(session_id=self.id, reason=self.unsaved))


class Talk:
    """A conversation of such sessions."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.stream = EventStream()
        self.info = ConversationInfo(id="c", created_at=1, updated_at=1)
        self.sessions: dict[str, Work] = {}
        self.opened = 0
        self.open()

    def open(self) -> None:
        self.opened += 1
        work = Work(self.stream, self.opened, self.random)
        self.sessions[work.id] = work

    def snapshot(self) -> Snapshot:
        return Snapshot(
            epoch=self.stream.epoch,
            seq=self.stream.seq,
            conversation=self.info,
            sessions=tuple(work.snapshot() for work in self.sessions.values()),
        )

    async def live(self, changes: int) -> None:
        for number in range(changes):
            await self.sessions[self.random.choice(list(self.sessions))].change()
            await trio.sleep(self.random.choice((0, 0, 0.01)))
            if self.random.random() < 0.05:
                self.open()
            if self.random.random() < 0.05:
                self.info = ConversationInfo(
                    id="c", created_at=1, updated_at=number, title=str(number)
                )
                self.stream.publish(ConversationChanged(conversation=self.info))


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
