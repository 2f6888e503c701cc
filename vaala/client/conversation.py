"""`RemoteConversation`: a conversation that lives in a server; see `vaala.interface`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from vaala.client import limits
from vaala.client.following import Follower, Next
from vaala.client.reader import Reader
from vaala.interface import Prompt, Signal
from vaala_protocol.content import Content, TextContent
from vaala_protocol.errors import NotFound, NotPending, Stopping
from vaala_protocol.events import Frame
from vaala_protocol.ids import new_id
from vaala_protocol.items import UserMessage
from vaala_protocol.methods import command, conversation, decisions, session
from vaala_protocol.methods.command import CommandOutputResult
from vaala_protocol.methods.session import SettingOption
from vaala_protocol.pages import ItemPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandInfo,
    ConversationInfo,
    Delivery,
    InputInfo,
    Snapshot,
    TurnInfo,
    TurnResult,
    UserInput,
)

if TYPE_CHECKING:
    from vaala.client.client import Client


class RemoteConversation:
    """Holds no state but the id. Every method raises `Refused` kinds, among them `NotFound`, and
    `Disconnected`; those that only look, and `send`, are asked again when a connection breaks.
    """

    def __init__(self, client: Client, conversation_id: str) -> None:
        self._client = client
        self._id = conversation_id

    @property
    def id(self) -> str:
        return self._id

    async def info(self) -> ConversationInfo:
        params = conversation.ConversationGetParams(conversation_id=self._id)
        return (await self._client.ask(params)).info

    async def run(
        self,
        prompt: Prompt,
        *,
        settings: Settings | None = None,
        client_id: str | None = None,
        output_schema: dict[str, Any] | None = None,
    ) -> TurnResult:
        """Send a prompt and wait for its turn to end, over as many connections as that takes.

        Otherwise like `vaala.interface.Conversation.run`; raises `Disconnected` when the server
        was given up. The message is sent once whatever happens.
        """
        content, is_new, client_id = _content(prompt), client_id is None, client_id or new_id()
        follower, found = Follower(self._id, client_id), Next.WAIT
        # From before the message is sent: it cannot tell where that is. All that there is to know
        # of one that is new comes behind that.
        watching = self._client.watch_conversation(self._id, from_now=is_new)
        async with watching as updates:
            while (known := updates.next_nowait()) is not None:
                found = follower.take(known)
            sent = await self.send(
                content, client_id=client_id, settings=settings, output_schema=output_schema
            )
            follower.sent()
            if not is_new and follower.turn_id is None and sent.state == "consumed":
                found = Next.SEARCH
            try:
                result = await self._result(follower, found, sent)
                while result is None and (update := await anext(updates, None)) is not None:
                    result = await self._result(follower, follower.take(update), sent)
            except NotFound:  # deleted: that has ended the turn, too
                result = None
        if result is not None:
            return result
        why = updates.reason or "deleted"
        raise Stopping(f"conversation {self._id} was closed before the turn ended: {why}")

    async def send(
        self,
        prompt: Prompt,
        *,
        delivery: Delivery = "queue",
        client_id: str | None = None,
        settings: Settings | None = None,
        output_schema: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> InputInfo:
        environment = self._client.new_environment()
        sent = await self._client.ask(
            session.SessionSendParams(
                conversation_id=self._id,
                session_id=session_id,
                client_id=client_id or new_id(),
                content=_content(prompt),
                delivery=delivery,
                settings=None if settings is None else self._client.settings_here(settings),
                output_schema=output_schema,
                environment=environment,
            )
        )
        self._client.environment_told(environment)
        return sent

    async def edit_input(
        self, input_id: str, prompt: Prompt, *, session_id: str | None = None
    ) -> InputInfo:
        return await self._client.ask(
            session.SessionEditInputParams(
                conversation_id=self._id,
                session_id=session_id,
                input_id=input_id,
                content=_content(prompt),
            )
        )

    async def withdraw_input(self, input_id: str, *, session_id: str | None = None) -> InputInfo:
        return await self._client.ask(
            session.SessionWithdrawInputParams(
                conversation_id=self._id, session_id=session_id, input_id=input_id
            )
        )

    async def move_input(
        self, input_id: str, *, before: str | None = None, session_id: str | None = None
    ) -> None:
        await self._client.ask(
            session.SessionMoveInputParams(
                conversation_id=self._id, session_id=session_id, input_id=input_id, before=before
            )
        )

    async def resume(self, *, session_id: str | None = None) -> None:
        await self._client.ask(
            session.SessionResumeParams(conversation_id=self._id, session_id=session_id)
        )

    async def compact(self, *, session_id: str | None = None) -> TurnInfo:
        return await self._client.ask(
            session.SessionCompactParams(conversation_id=self._id, session_id=session_id)
        )

    async def interrupt(self, turn_id: str | None = None, *, session_id: str | None = None) -> bool:
        params = session.SessionInterruptParams(
            conversation_id=self._id, session_id=session_id, turn_id=turn_id
        )
        return (await self._client.ask(params)).interrupted

    async def answer_approval(
        self,
        approval_id: str,
        option: str,
        *,
        by: str = "user",
        reason: str = "",
        interrupt: bool = False,
    ) -> None:
        await self._client.ask(
            decisions.ApprovalAnswerParams(
                conversation_id=self._id,
                approval_id=approval_id,
                option=option,
                by=by,
                reason=reason,
                interrupt=interrupt,
            )
        )

    async def answer_question(
        self, question_id: str, answer: str | None, *, by: str = "user"
    ) -> None:
        await self._client.ask(
            decisions.QuestionAnswerParams(
                conversation_id=self._id, question_id=question_id, answer=answer, by=by
            )
        )

    async def configure(self, settings: Settings, *, session_id: str | None = None) -> Settings:
        return (await self._configure(settings, session_id)).settings

    async def options(self, *, session_id: str | None = None) -> tuple[SettingOption, ...]:
        return (await self._configure(Settings(), session_id)).options

    async def update(
        self,
        *,
        title: str | None = None,
        directory: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
    ) -> ConversationInfo:
        """Change what is given, one after the other: an error may leave the first of it changed."""
        id = self._id
        info: ConversationInfo | None = None
        if directory is not None or tags is not None:
            place = None if directory is None else self._client.absolute(directory)
            wanted = None if tags is None else tuple(tags)
            info = await self._client.ask(
                conversation.ConversationUpdateParams(
                    conversation_id=id, directory=place, tags=wanted
                )
            )
        if title is not None:
            info = await self._client.ask(
                conversation.ConversationRenameParams(conversation_id=id, title=title)
            )
        if archived is not None:
            info = await self._client.ask(
                conversation.ConversationArchiveParams(conversation_id=id, archived=archived)
            )
        return await self.info() if info is None else info

    async def items(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        session_id: str | None = None,
    ) -> ItemPage:
        return await self._client.ask(
            session.SessionItemsParams(
                conversation_id=self._id,
                session_id=session_id,
                before=before,
                after=after,
                limit=limit,
            )
        )

    async def turn(self, turn_id: str, *, session_id: str | None = None) -> TurnResult:
        """Return how a turn stands or ended, however long ago. Raises `NotFound`."""
        return await self._client.ask(
            session.SessionTurnParams(
                conversation_id=self._id, session_id=session_id, turn_id=turn_id
            )
        )

    def subscribe(self) -> AbstractAsyncContextManager[Reader[Snapshot, Frame]]:
        """Watch the conversation: iterate to get a `Snapshot` first, then each `Frame`.

        It outlives connections and servers: frames go on where they ended, or a new snapshot
        comes. Iteration ends when the conversation was deleted or crashes again and again, which
        ``reason`` tells; it raises `Disconnected` when the server was given up.
        """
        return self._client.watch_conversation(self._id)

    async def commands(self) -> tuple[CommandInfo, ...]:
        params = command.CommandListParams(conversation_id=self._id)
        return (await self._client.ask(params)).commands

    async def command_output(
        self, command_id: str, offset: int = 0, limit_bytes: int = 65_536
    ) -> CommandOutputResult:
        return await self._client.ask(
            command.CommandOutputParams(
                conversation_id=self._id,
                command_id=command_id,
                offset=offset,
                limit_bytes=limit_bytes,
            )
        )

    async def write_command(self, command_id: str, text: str) -> None:
        await self._client.ask(
            command.CommandWriteParams(conversation_id=self._id, command_id=command_id, text=text)
        )

    async def resize_command(self, command_id: str, columns: int, rows: int) -> None:
        await self._client.ask(
            command.CommandResizeParams(
                conversation_id=self._id, command_id=command_id, columns=columns, rows=rows
            )
        )

    async def kill_command(self, command_id: str, signal: Signal = "TERM") -> None:
        await self._client.ask(
            command.CommandKillParams(
                conversation_id=self._id, command_id=command_id, signal=signal
            )
        )

    async def _configure(
        self, settings: Settings, session_id: str | None
    ) -> session.SessionConfigureResult:
        return await self._client.ask(
            session.SessionConfigureParams(
                conversation_id=self._id,
                session_id=session_id,
                settings=self._client.settings_here(settings),
            )
        )

    async def _result(self, follower: Follower, found: Next, sent: InputInfo) -> TurnResult | None:
        """Return the result of the turn that is followed, None when it has not ended yet."""
        if found is Next.SEARCH:
            found = await self._search(follower, sent)
        if found is not Next.ENDED or follower.turn_id is None:
            return None
        result = await self.turn(follower.turn_id)
        return None if result.turn.state == "running" else result

    async def _search(self, follower: Follower, sent: InputInfo) -> Next:
        """Find the turn of a message that was taken while there was no connection."""
        assert isinstance(sent.source, UserInput)
        again = await self.send(sent.source.content, client_id=sent.client_id)  # finds the first
        if again.state in ("waiting", "held"):
            return Next.WAIT
        # A send that was repeated tells when that was done.
        oldest = sent.created_at - limits.REQUEST_S * 1000
        before: int | None = None
        while True:
            page = await self.items(before=before, limit=limits.PAGE_ITEMS)
            for item in page.items:
                if isinstance(item, UserMessage) and item.client_id == sent.client_id:
                    follower.found(item)
                    return Next.ENDED
            if not page.earlier or not page.items or page.items[-1].created_at < oldest:
                raise NotPending(f"input {sent.id} was withdrawn")
            before = page.items[0].at


def _content(prompt: Prompt) -> tuple[Content, ...]:
    return (TextContent(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
