"""`ConversationHandle`: a conversation as Python programs use it.

Holds no state but the id: a conversation that was closed for lack of use is opened again when it
is next asked for something.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from vaala.conversation import Update
from vaala.requests import (
    AnswerApproval,
    Configure,
    EditInput,
    MoveInput,
    Resume,
    Send,
    WithdrawInput,
)
from vaala.stream import Subscription
from vaala_protocol.content import Content, TextContent
from vaala_protocol.errors import NotFound, NotPending
from vaala_protocol.ids import new_id
from vaala_protocol.pages import ItemPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    ConversationInfo,
    Delivery,
    InputInfo,
    TurnResult,
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

        The turn may be completed, failed or interrupted: see ``result.turn``. Raises `NotPending`
        when the message was withdrawn before a turn took it, `Stopping` when the conversation was
        closed. Cancel: only stops waiting; use `interrupt` to end the turn.
        """
        client_id = new_id()
        root = await self._root()
        with root.outcomes.expect(client_id) as turn:
            await self.send(prompt, client_id=client_id, settings=settings)
            return await turn.wait()

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
        """Change title, work directory, tags or archived; None leaves it as it is.

        A running turn goes on in the new directory with its next call; commands stay where they
        are. Raises `BadRequest` for what cannot be stored.
        """
        conversation = await self._runtime.conversation(self.id)
        where = None if directory is None else (conversation.place(directory),)
        return await conversation.ask(
            Update(title, where, None if tags is None else tuple(tags), archived)
        )

    async def items(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        session_id: str | None = None,
    ) -> ItemPage:
        """Return a page of a session's transcript (the root's by default), by place (``at``)."""
        conversation = await self._runtime.conversation(self.id)
        root = await conversation.root()
        session = root if session_id is None else conversation.sessions.get(session_id)
        if session is None:
            raise NotFound(f"no session {session_id} is open in conversation {self.id}")
        with conversation.reading():
            return await session.log.items(before=before, after=after, limit=limit)

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Subscription]:
        """Watch the conversation: iterate to get a `Snapshot` first, then each `Frame`."""
        conversation = await self._runtime.conversation(self.id)
        async with conversation.subscribe() as subscription:
            yield subscription

    async def _root(self) -> Session:
        return await (await self._runtime.conversation(self.id)).root()
