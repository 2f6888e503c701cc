"""Clients that do at random what clients do, and note in the ledger what they were told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

import trio

from tests.simulation.brain import Brain
from tests.simulation.ledger import Ledger, Message
from vaala.conversation import Conversation
from vaala.handle import ConversationHandle
from vaala.runtime import Runtime
from vaala.testing.projection import Projection
from vaala_protocol.errors import BadRequest, NotFound, NotPending, Refused
from vaala_protocol.items import Approval
from vaala_protocol.settings import Mode, Settings
from vaala_protocol.state import Delivery, Snapshot

MODES: tuple[Mode, ...] = ("full", "full", "ask", "auto-edit", "read-only")


class Client:
    """Does one operation after the other; it edits and withdraws its own messages alone."""

    def __init__(self, runtime: Runtime, ledger: Ledger, brain: Brain, random: Random) -> None:
        self.runtime = runtime
        self.ledger = ledger
        self.brain = brain
        self.random = random
        self._own: list[Message] = []

    async def run(self, operations: int) -> None:
        for _ in range(operations):
            await trio.sleep(self.random.choice((0, 0, 0, 0.01, 0.1, 1, 20)))
            self.ledger.ops += 1
            try:
                await self._operation()
            except Refused:
                continue

    async def _operation(self) -> None:
        if not self.ledger.messages or self.random.random() < 0.04:
            await self.begin()
            return
        name = self.random.choices(list(_OPERATIONS), list(_OPERATIONS.values()))[0]
        act: Callable[[ConversationHandle], Awaitable[None]] = getattr(self, name)
        await act(await self._talk())

    async def _talk(self) -> ConversationHandle:
        known = {one.conversation_id for one in self.ledger.messages.values()}
        return await self.runtime.open_conversation(self.random.choice(sorted(known)))

    async def begin(self) -> None:
        settings = Settings(mode=self.random.choice(MODES))
        talk = await self.runtime.create_conversation(directory="/w", settings=settings)
        await self.send(talk)

    async def send(self, talk: ConversationHandle) -> None:
        text = self.brain.words()
        message = Message(talk.id, f"m{len(self.ledger.messages)}", {text})
        self.ledger.sent(message)
        await self._send(talk, message, text)
        self._own.append(message)

    async def send_again(self, talk: ConversationHandle) -> None:
        """A retry with the same id, of a message whose outcome is known or not."""
        of_talk = [one for one in self.ledger.of(talk.id) if len(one.texts) == 1]
        if of_talk:
            message = self.random.choice(of_talk)
            await self._send(talk, message, next(iter(message.texts)))

    async def _send(self, talk: ConversationHandle, message: Message, text: str) -> None:
        delivery: Delivery = "steer" if self.random.random() < 0.3 else "queue"
        sent = await talk.send(text, client_id=message.client_id, delivery=delivery)
        self.ledger.accepted(message, sent.id)

    async def edit(self, talk: ConversationHandle) -> None:
        message = self._one_of_mine(talk)
        if message is None or message.input_id is None:
            return
        text = self.brain.words()
        before = set(message.texts)
        message.texts.add(text)
        try:
            await talk.edit_input(message.input_id, text)
        except (NotPending, NotFound, BadRequest):
            message.texts = before
        else:
            message.texts = {text}

    async def withdraw(self, talk: ConversationHandle) -> None:
        message = self._one_of_mine(talk)
        if message is None or message.input_id is None:
            return
        before = message.maybe_withdrawn
        message.maybe_withdrawn = True
        try:
            await talk.withdraw_input(message.input_id)
        except (NotPending, NotFound):
            message.maybe_withdrawn = before
        else:
            message.withdrawn = True

    async def move(self, talk: ConversationHandle) -> None:
        known = [one.input_id for one in self.ledger.of(talk.id) if one.input_id is not None]
        if known:
            before = self.random.choice([None, *known])
            await talk.move_input(self.random.choice(known), before=before)

    def _one_of_mine(self, talk: ConversationHandle) -> Message | None:
        mine = [one for one in self._own if one.conversation_id == talk.id]
        return self.random.choice(mine[-3:]) if mine else None

    async def resume(self, talk: ConversationHandle) -> None:
        await talk.resume()

    async def interrupt(self, talk: ConversationHandle) -> None:
        await talk.interrupt()

    async def configure(self, talk: ConversationHandle) -> None:
        await talk.configure(Settings(mode=self.random.choice(MODES)))

    async def rename(self, talk: ConversationHandle) -> None:
        await talk.update(title=self.brain.words(2))

    async def approve(self, talk: ConversationHandle) -> None:
        """Answer an approval, sometimes one that was settled long ago."""
        asked = [
            item.id
            for session in (await self._look(talk)).sessions
            for item in session.items
            if isinstance(item, Approval) and (item.state == "pending" or self._rarely())
        ]
        if asked:
            option = self.random.choice(("allow", "allow", "allow-session", "reject"))
            one = self.random.choice(asked)
            await talk.answer_approval(one, option, interrupt=self.random.random() < 0.1)

    def _rarely(self) -> bool:
        return self.random.random() < 0.1

    async def _look(self, talk: ConversationHandle) -> Snapshot:
        async with talk.subscribe() as updates:
            update = await anext(updates)
        assert isinstance(update, Snapshot)
        return update

    async def watch(self, talk: ConversationHandle) -> None:
        """Follow the stream for a while: what it adds up to is what a new snapshot shows."""
        conversation = await self.runtime.conversation(talk.id)
        projection = Projection()
        async with conversation.subscribe() as updates:
            for _ in range(self.random.randrange(1, 6)):
                while (update := updates.next_nowait()) is not None:
                    projection.apply(update)
                compare(projection.state, conversation)
                await trio.sleep(self.random.choice((0, 0.01, 1, 10)))

    async def process(self, talk: ConversationHandle) -> None:
        self.brain.processes_go_on()

    async def evict(self, talk: ConversationHandle) -> None:
        """Close a conversation, as one that nobody has used for long."""
        (await self.runtime.conversation(talk.id)).stop()

    async def read(self, talk: ConversationHandle) -> None:
        limit = self.random.randint(1, 9)
        newest = await talk.items(limit=limit)
        if newest.earlier:
            before = await talk.items(before=newest.items[0].at, limit=limit)
            assert before.items[-1].at < newest.items[0].at


_OPERATIONS = {
    "send": 16, "send_again": 3, "edit": 4, "withdraw": 3, "move": 3, "resume": 3,
    "interrupt": 4, "configure": 2, "rename": 1, "approve": 12, "watch": 6, "process": 6,
    "evict": 2, "read": 3,
}  # fmt: skip


def compare(seen: Snapshot, conversation: Conversation) -> None:
    """Check that a projection shows what a snapshot of this moment shows."""
    now = conversation.snapshot()
    assert (seen.epoch, seen.seq) == (now.epoch, now.seq)
    assert seen.conversation.status == now.conversation.status
    sessions = {session.info.id: session for session in now.sessions}
    assert {session.info.id for session in seen.sessions} == sessions.keys()
    for session in seen.sessions:
        other = sessions[session.info.id]
        ids = {command.id for command in session.commands}
        assert ids == {command.id for command in other.commands}, f"commands of {session.info.id}"
        for name in set(session.__struct_fields__) - {"commands"}:
            assert getattr(session, name) == getattr(other, name), f"{name} of {session.info.id}"
