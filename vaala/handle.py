"""`ConversationHandle`: a conversation as Python programs use it.

Holds no state but the id: a conversation that was closed for lack of use is opened again when it
is next asked for something.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

from vaala import commanding, limits
from vaala.activity import activity_of
from vaala.conversation import Update
from vaala.decisions import keep_rule
from vaala.requests import (
    AnswerApproval,
    AnswerQuestion,
    Compact,
    Configure,
    EditInput,
    MoveInput,
    Resume,
    Send,
    WithdrawInput,
)
from vaala.session_settings import options_of
from vaala.session_view import read_items, read_turn
from vaala.stream import QueueBudget, Reading, Subscription
from vaala_protocol.content import Content, TextContent
from vaala_protocol.errors import NotFound, NotPending
from vaala_protocol.ids import new_id
from vaala_protocol.items import UserMessage
from vaala_protocol.pages import ItemPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandInfo,
    ConversationInfo,
    Delivery,
    InputInfo,
    TurnInfo,
    TurnResult,
    UserInput,
)

if TYPE_CHECKING:
    from vaala.dao.session_log import SessionLog
    from vaala.runtime import Runtime
    from vaala.session import Session
    from vaala_protocol.methods.command import CommandOutputResult
    from vaala_protocol.methods.conversation import Position
    from vaala_protocol.methods.runtime import ConversationActivity
    from vaala_protocol.methods.session import SettingOption


class ConversationHandle:
    """Every method raises `Refused` kinds, among them `NotFound` when it was deleted.

    ``session_id`` is a session of the conversation that is open, its root by default; `NotFound`
    names one that is not. ``items`` and ``turn`` also read sessions that have ended.
    """

    def __init__(self, runtime: Runtime, conversation_id: str) -> None:
        self._runtime = runtime
        self.id = conversation_id

    async def info(self) -> ConversationInfo:
        return (await self._runtime.conversation(self.id)).info

    async def status(self) -> ConversationActivity:
        """Return what runs in it now and what that waits for."""
        return activity_of(await self._runtime.conversation(self.id))

    async def run(
        self,
        prompt: str | Sequence[Content],
        *,
        settings: Settings | None = None,
        client_id: str | None = None,
        output_schema: dict[str, Any] | None = None,
    ) -> TurnResult:
        """Send a prompt and wait for its turn to end.

        With ``output_schema``, a JSON Schema, the text of a completed turn is one JSON document
        that matches it; a turn whose model does not get there, told what is wrong, has failed.
        The ``client_id`` of an earlier run gives the turn of that one.
        The turn may be completed, failed or interrupted: see ``result.turn``. Raises `NotPending`
        when the message was withdrawn before a turn took it, `Stopping` when the conversation was
        closed. Cancel: only stops waiting; use `interrupt` to end the turn.
        """
        client_id = client_id or new_id()
        root = await self._session(None)
        known = client_id in root.state.client_ids
        with root.outcomes.expect(client_id) as turn:
            sent = await self.send(
                prompt, client_id=client_id, settings=settings, output_schema=output_schema
            )
            if known and sent.state in ("consumed", "withdrawn"):
                earlier = await self.turn(await self._turn_of(sent))
                if earlier.turn.state != "running":
                    return earlier
            return await turn.wait()

    async def _turn_of(self, sent: InputInfo) -> str:
        """Return the turn that has taken a message. Raises `NotPending` for one without."""
        before: int | None = None
        while sent.state == "consumed":
            page = await self.items(before=before, limit=limits.HISTORY_PAGE_ITEMS)
            for item in page.items:
                if isinstance(item, UserMessage) and item.input_id == sent.id and item.turn_id:
                    return item.turn_id
            if not page.earlier or not page.items:
                break
            before = page.items[0].at
        raise NotPending(f"input {sent.id} was withdrawn")

    async def send(
        self,
        prompt: str | Sequence[Content],
        *,
        delivery: Delivery = "queue",
        client_id: str | None = None,
        settings: Settings | None = None,
        output_schema: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> InputInfo:
        """Give the agent a message; it is on disk when this returns, all that it asks for with it.

        ``queue``: it waits for its own turn. ``steer``: the running turn takes it before its next
        model call. The same ``client_id`` again finds the first send's input.
        """
        (await self._runtime.conversation(self.id)).check_place()
        source = UserInput(content=_content(prompt))
        send = Send(client_id or new_id(), source, delivery, settings, output_schema)
        return await (await self._session(session_id)).ask(send)

    async def edit_input(
        self, input_id: str, prompt: str | Sequence[Content], *, session_id: str | None = None
    ) -> InputInfo:
        """Change a message that waits; raises `NotPending` when it was taken."""
        session = await self._session(session_id)
        return await session.ask(EditInput(input_id, _content(prompt)))

    async def withdraw_input(self, input_id: str, *, session_id: str | None = None) -> InputInfo:
        """Take back a message that waits; raises `NotPending` when it was taken."""
        return await (await self._session(session_id)).ask(WithdrawInput(input_id))

    async def move_input(
        self, input_id: str, *, before: str | None = None, session_id: str | None = None
    ) -> None:
        """Put a message that waits before another one, or at the end."""
        await (await self._session(session_id)).ask(MoveInput(input_id, before))

    async def resume(self, *, session_id: str | None = None) -> None:
        """Release the queue that an interrupt or a restart has held."""
        (await self._runtime.conversation(self.id)).check_place()
        await (await self._session(session_id)).ask(Resume())

    async def compact(self, *, session_id: str | None = None) -> TurnInfo:
        """Begin a turn that replaces what was said so far by a summary; return that turn.

        Raises `Busy` while a turn runs, `BadRequest` when there is nothing to compact.
        """
        return await (await self._session(session_id)).ask(Compact())

    async def interrupt(
        self,
        turn_id: str | None = None,
        *,
        session_id: str | None = None,
        sent: Collection[str] = (),
    ) -> bool:
        """Interrupt the running turn (or only the one named); False when it does not run.

        Acknowledged at once; the turn's clean-up follows. It interrupts the agents that the turn
        has started, too. What waits in the queue is held, until the next message or `resume`.

        ``sent`` are the client ids of messages that were sent before the interrupt and that it may
        have overtaken: a turn that has taken one of them is interrupted whatever was named, and
        those that wait are held.
        """
        return (await self._session(session_id)).interrupt(turn_id, sent)

    async def answer_approval(
        self,
        approval_id: str,
        option: str,
        *,
        by: str = "user",
        reason: str = "",
        interrupt: bool = False,
    ) -> None:
        """Decide a pending approval of any session; raises `NotPending` for a late answer.

        A rule that is allowed for good is written into the configuration first, and when that
        fails (`BadRequest`), nothing is decided.
        """
        session = await self._asking(approval_id, "approval")
        await keep_rule(session, approval_id, option)
        await session.ask(AnswerApproval(approval_id, option, by, reason, interrupt))

    async def answer_question(
        self, question_id: str, answer: str | None, *, by: str = "user"
    ) -> None:
        """Answer a pending question of any session; None: the person does not want to.

        Any text is taken, whatever the choices. Raises `NotPending` for a late answer.
        """
        session = await self._asking(question_id, "question")
        await session.ask(AnswerQuestion(question_id, answer, by))

    async def configure(self, settings: Settings, *, session_id: str | None = None) -> Settings:
        """Change the settings that are given; returns those in force.

        When none is given it only looks: nothing is written then.
        """
        session = await self._session(session_id)
        if settings == Settings():
            return session.state.head.settings
        return await session.ask(Configure(settings))

    async def options(
        self, *, session_id: str | None = None, keys: Mapping[str, str] | None = None
    ) -> tuple[SettingOption, ...]:
        """Return what can be set with `configure`, what it is set to, and what it can be.

        ``keys`` are variables of providers; None: those of the client that it works for.
        """
        return await options_of(await self._session(session_id), keys)

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
        async with self._reading(session_id) as log:
            return await read_items(log, before=before, after=after, limit=limit)

    async def turn(self, turn_id: str, *, session_id: str | None = None) -> TurnResult:
        """Return how a turn stands or ended, however long ago. Raises `NotFound`."""
        async with self._reading(session_id) as log:
            conversation = await self._runtime.conversation(self.id)
            session = conversation.sessions.get(log.session_id)
            if session is not None:
                return await session.outcomes.of(turn_id)
            return await read_turn(log, turn_id)

    @asynccontextmanager
    async def subscribe(
        self,
        after: Position | None = None,
        *,
        budget: QueueBudget | None = None,
        on_ready: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Subscription]:
        """Watch the conversation: iterate to get a `Snapshot` first, then each `Frame`.

        With ``after`` the frames behind that position come instead, without a snapshot, when all
        of them are still known: then ``subscription.resumed``. ``budget`` bounds what waits for
        all subscriptions of one client; ``on_ready`` is called when there is something to read
        again after a read found nothing (`vaala.subscription.Reading`).

        Iteration ends when the conversation does, and ``subscription.reason`` says why:
        ``deleted``; ``closing``, with the runtime or for lack of use; ``crashed``, then subscribe
        again, it reopens from its log.
        """
        conversation = await self._runtime.conversation(self.id)
        reading = Reading(budget, on_ready)
        async with conversation.subscribe(after=after, reading=reading) as subscription:
            yield subscription

    async def commands(self) -> tuple[CommandInfo, ...]:
        """Return the commands that run in the background of its sessions, oldest first."""
        return commanding.commands_of(await self._runtime.conversation(self.id))

    async def command_output(
        self, command_id: str, offset: int = 0, limit_bytes: int = 65_536
    ) -> CommandOutputResult:
        """Return output of a command that runs or ended lately, from a byte on.

        What is there: of a command that has ended and said more than
        `vaala.tools.limits.COMMAND_OUTPUT_BYTES_MAX`, everything up to
        `vaala.tools.limits.COMMAND_SAVED_BYTES_MAX`, from its blob; of any other the newest
        `vaala.tools.limits.COMMAND_WINDOW_BYTES_MAX` bytes. When bytes that were asked for are
        not there, the page begins with the first one that is. The text is the output as it came,
        control sequences included, decoded from UTF-8 with replacement; a page ends between
        characters. Raises `NotFound`, and `Unreadable` for a blob that cannot be read.
        """
        conversation = await self._runtime.conversation(self.id)
        return await commanding.read_output(conversation, command_id, offset, limit_bytes)

    async def write_command(self, command_id: str, text: str) -> None:
        """Write to the standard input of a command; without a terminal ^C and ^D act.

        Raises `NotFound`, and `BadRequest` when it has ended or reads no input.
        """
        conversation = await self._runtime.conversation(self.id)
        await commanding.write(conversation, command_id, text)

    async def resize_command(self, command_id: str, columns: int, rows: int) -> None:
        """Change the size of a command's terminal; raises `BadRequest` for one without."""
        conversation = await self._runtime.conversation(self.id)
        await commanding.resize(conversation, command_id, columns, rows)

    async def kill_command(
        self, command_id: str, signal: Literal["INT", "TERM", "KILL", "HUP"] = "TERM"
    ) -> None:
        """Signal a command (INT, HUP), or end its whole tree: TERM with a grace, KILL at once.

        With TERM and KILL it has ended when this returns. Harmless when it had ended before.
        Cancel: the tree is ended all the same.
        """
        conversation = await self._runtime.conversation(self.id)
        await commanding.kill(conversation, command_id, signal)

    async def _session(self, session_id: str | None) -> Session:
        """Return an open session; the root, opened again from its log when it has crashed."""
        conversation = await self._runtime.conversation(self.id)
        root = await conversation.root()
        session = root if session_id is None else conversation.sessions.get(session_id)
        if session is None:
            raise NotFound(f"no session {session_id} is open in conversation {self.id}")
        return session

    @asynccontextmanager
    async def _reading(self, session_id: str | None) -> AsyncGenerator[SessionLog]:
        """Yield the log of a session; one that has ended is read as it was left."""
        conversation = await self._runtime.conversation(self.id)
        root = await conversation.root()
        session_id = session_id or root.id
        session = conversation.sessions.get(session_id)
        with conversation.reading():
            yield session.log if session else await conversation.log.open_session(session_id)

    async def _asking(self, decision_id: str, what: str) -> Session:
        conversation = await self._runtime.conversation(self.id)
        for session in list(conversation.sessions.values()):
            if decision_id in session.state.open:
                return session
        raise NotPending(f"{what} {decision_id} is not pending")


def _content(prompt: str | Sequence[Content]) -> tuple[Content, ...]:
    return (TextContent(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
