"""A conversation whose sessions change at random, as sessions change, to be watched in tests."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import trio

from vaala import limits
from vaala.changes import replace
from vaala.live import LiveParts
from vaala.stream import EventStream
from vaala.waits import Waits
from vaala_protocol.content import TextContent
from vaala_protocol.events import (
    CommandChanged,
    ConversationChanged,
    InputChanged,
    ItemChanged,
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
