"""`ConversationHandle`: a conversation as Python programs use it.

Holds no state but the id: a conversation that was closed for lack of use is opened again when it
is next asked for something.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from vaala.conversation import Update
from vaala.dao.pages import ItemPage
from vaala.requests import (
    AnswerApproval,
    Configure,
    EditInput,
    MoveInput,
    Resume,
    Send,
    TurnResult,
    WithdrawInput,
)
from vaala.stream import Subscription
from vaala.stream import Update as StreamUpdate
from vaala_protocol.content import Content, TextContent
from vaala_protocol.errors import NotPending, Stopping
from vaala_protocol.events import ItemChanged, TurnChanged
from vaala_protocol.ids import new_id
from vaala_protocol.items import Item, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    ConversationInfo,
    Delivery,
    InputInfo,
    Location,
    Snapshot,
    TurnInfo,
    UserInput,
)

if TYPE_CHECKING:
    from vaala.runtime import Runtime
    from vaala.session import Session


class ConversationHandle:
    """Every method raises `Refused` kinds, among them `NotFound` when it was deleted."""

    def __init__(self, runtime: Runtime, conversation_id: str) -> None:
        self._runtime = runtime
        self.id = conversation_id

    async def info(self) -> ConversationInfo:
        return (await self._runtime.conversation(self.id)).info

    async def run(
        self, prompt: str | Sequence[Content], *, settings: Settings | None = None
    ) -> TurnResult:
        """Send a prompt and wait for its turn to end.

        The turn may be completed, failed or interrupted: see ``result.turn``. Cancel: only stops
        waiting; use `interrupt` to end the turn.
        """
        async with self.subscribe() as updates:
            sent = await self.send(prompt, settings=settings)
            turn = await _turn_of(updates, sent.id)
        root = await self._root()
        return await root.result_of(turn)

    async def send(
        self,
        prompt: str | Sequence[Content],
        *,
        delivery: Delivery = "queue",
        client_id: str | None = None,
        settings: Settings | None = None,
    ) -> InputInfo:
        """Give the agent a message; it is on disk when this returns.

        ``queue``: it waits for its own turn. ``steer``: the running turn takes it before its next
        model call. The same ``client_id`` again finds the first send's input.
        """
        (await self._runtime.conversation(self.id)).check_place()
        content = (TextContent(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
        send = Send(client_id or new_id(), UserInput(content=content), delivery, settings)
        return await (await self._root()).ask(send)

    async def edit_input(self, input_id: str, prompt: str) -> InputInfo:
        """Change a message that waits; raises `NotPending` when it was taken."""
        root = await self._root()
        return await root.ask(EditInput(input_id, (TextContent(text=prompt),)))

    async def withdraw_input(self, input_id: str) -> InputInfo:
        """Take back a message that waits; raises `NotPending` when it was taken."""
        return await (await self._root()).ask(WithdrawInput(input_id))

    async def move_input(self, input_id: str, *, before: str | None = None) -> None:
        """Put a message that waits before another one, or at the end."""
        await (await self._root()).ask(MoveInput(input_id, before))

    async def resume(self) -> None:
        """Release the queue that an interrupt or a restart has held."""
        (await self._runtime.conversation(self.id)).check_place()
        await (await self._root()).ask(Resume())

    async def interrupt(self, turn_id: str | None = None) -> bool:
        """Interrupt the running turn (or only the one named); False when it does not run.

        Acknowledged at once; the turn's clean-up follows.
        """
        return (await self._root()).interrupt(turn_id)

    async def answer_approval(
        self,
        approval_id: str,
        option: str,
        *,
        by: str = "user",
        reason: str = "",
        interrupt: bool = False,
    ) -> None:
        """Decide a pending approval of any session; raises `NotPending` for a late answer."""
        conversation = await self._runtime.conversation(self.id)
        answer = AnswerApproval(approval_id, option, by, reason, interrupt)
        for session in list(conversation.sessions.values()):
            if approval_id in session.state.open:
                return await session.ask(answer)
        raise NotPending(f"approval {approval_id} is not pending")

    async def configure(self, settings: Settings) -> Settings:
        """Change the settings that are given; returns those in force."""
        return await (await self._root()).ask(Configure(settings))

    async def update(
        self,
        *,
        title: str | None = None,
        directory: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
    ) -> ConversationInfo:
        """Change title, work directory, tags or archived; None leaves it as it is."""
        conversation = await self._runtime.conversation(self.id)
        where = (Location(executor="local", directory=directory),) if directory else None
        return await conversation.ask(
            Update(title, where, None if tags is None else tuple(tags), archived)
        )

    async def items(
        self, *, before: int | None = None, after: int | None = None, limit: int = 50
    ) -> ItemPage:
        """Return a page of the transcript, oldest first, by place (``at``)."""
        return await (await self._root()).log.items(before=before, after=after, limit=limit)

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Subscription]:
        """Watch the conversation: iterate to get a `Snapshot` first, then each `Frame`."""
        conversation = await self._runtime.conversation(self.id)
        async with conversation.subscribe() as subscription:
            yield subscription

    async def _root(self) -> Session:
        return await (await self._runtime.conversation(self.id)).root()


async def _turn_of(updates: AsyncIterator[StreamUpdate], input_id: str) -> TurnInfo:
    """Return the ended turn that took an input; raises `BadRequest` when it was withdrawn."""
    turn_id: str | None = None
    async for update in updates:
        items, turns = _news(update)
        for item in items:
            if isinstance(item, UserMessage) and item.input_id == input_id:
                turn_id = item.turn_id
        for turn in turns:
            if turn.id == turn_id and turn.state != "running":
                return turn
    raise Stopping("the conversation closed before the turn ended")


def _news(update: StreamUpdate) -> tuple[Sequence[Item], Sequence[TurnInfo]]:
    match update:
        case Snapshot(sessions=sessions):
            items = [item for session in sessions for item in session.items]
            return items, [session.turn for session in sessions if session.turn is not None]
        case _:
            match update.event:
                case ItemChanged(item=item):
                    return [item], []
                case TurnChanged(turn=turn):
                    return [], [turn]
                case _:
                    return [], []
