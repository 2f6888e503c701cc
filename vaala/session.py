"""`Session`: one agent's line of work, and the only writer of its log."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import outcome
import trio

from vaala import inputs, limits, requests
from vaala.actor import Actor
from vaala.agent.estimate import Estimates
from vaala.agent.history import History
from vaala.changes import Change, input_change, now_ms, replace, turn_change
from vaala.children import Children, never_ran
from vaala.command_news import CommandNews
from vaala.cut_requests import CutRequests
from vaala.dao.session_log import SessionLog
from vaala.dao.state import SessionState
from vaala.decisions import answer_approval, answer_question, withdraw_question
from vaala.definitions import Surroundings
from vaala.live import LiveParts
from vaala.models.base import Model
from vaala.news import News
from vaala.outcomes import Outcomes
from vaala.recorder import Recorder
from vaala.recovery import recovery_changes
from vaala.session_files import SessionFiles
from vaala.session_history import SessionHistory
from vaala.session_settings import configure
from vaala.session_view import RecentItems, snapshot_of
from vaala.tools.commands import SessionCommands
from vaala.tools.running_command import SessionCommand
from vaala.turn import Turn
from vaala.turns import Turns
from vaala.waits import Waits
from vaala_protocol.errors import BadRequest, NotDurable, NotPending, Refused, Stopping
from vaala_protocol.events import (
    Event,
    ItemChanged,
    SessionClosed,
    SessionOpened,
    SettingsChanged,
    Unsaved,
    WaitsChanged,
)
from vaala_protocol.items import Approval, Question, SettingsChange
from vaala_protocol.public import public_item
from vaala_protocol.state import CommandInfo, InputInfo, SessionInfo, SessionSnapshot, TurnResult


class Session(Actor):
    """Owns the log, the input queue, the running turn, commands and child sessions.

    ``done`` is told of each ended turn; it must not wait.
    """

    def __init__(
        self,
        around: Surroundings,
        session_log: SessionLog,
        *,
        depth: int,
        done: Callable[[Session, TurnResult], None] | None = None,
    ) -> None:
        super().__init__()
        self.around = around
        self.log = session_log
        self.depth = depth
        self.live = LiveParts(self.id, self.publish)
        self.waits = Waits(
            lambda waits: self.publish(WaitsChanged(session_id=self.id, waits=waits))
        )
        self.recent = RecentItems(session_log)
        self.files = SessionFiles(around.log.blobs, self.state.head.reads)
        self._turns = Turns(self)
        self.used_at = trio.current_time()
        self.outcomes = Outcomes(session_log)
        self._done = done
        self._news = News(self)
        self._recorder = Recorder(session_log, self._publish_change, around.definitions.observer)
        self.unsaved: str | None = None
        self._last_at = self.state.head.last_at
        self.history: History | None = None
        self.estimates = Estimates()
        self.cuts = CutRequests()
        self._children: Children | None = None
        self._commands: SessionCommands | None = None

    def __str__(self) -> str:
        return f"session {self.id}"

    @property
    def id(self) -> str:
        return self.log.session_id

    @property
    def turn(self) -> Turn | None:
        """The turn that runs, clean-up included."""
        return self._turns.running

    @property
    def state(self) -> SessionState:
        return self.log.state

    @property
    def info(self) -> SessionInfo:
        return self.log.info

    @staticmethod
    @asynccontextmanager
    async def open(
        around: Surroundings,
        session_id: str,
        *,
        depth: int,
        done: Callable[[Session, TurnResult], None] | None = None,
    ) -> AsyncGenerator[Session]:
        """Open a session from its log and settle what a crash left. Raises `NotFound`."""
        session = Session(around, await around.log.open_session(session_id), depth=depth, done=done)
        try:
            yield session
        finally:
            session.outcomes.fail(Stopping(f"{session} was closed before the turn ended"))
            if around.sessions.pop(session.id, None) is not None:
                session.publish(SessionClosed(session_id=session.id))
                around.session_closed(session.id)

    async def opened(self) -> None:
        if self.around.stream.watched:
            await self.recent.load()
        self.around.sessions[self.id] = self
        self.publish(SessionOpened(session=self.snapshot()))
        if self.log.read_only is None and (changes := self._recovery()):
            with suppress(NotDurable):
                await self.write(changes, keep=True)
        if self.state.head.children:
            self.children_table.reopen(tuple(self.state.head.children))

    async def closing(self) -> None:
        if self.turn is not None:
            self.turn.interrupt("shutdown")
        elif self._recorder.unsaved:
            with suppress(NotDurable):
                await self.write((), keep=True)
        self.children.cancel_scope.cancel()

    def tick(self, now: float) -> None:
        """Give back memory that an idle session does not need; called now and then."""
        if self._children is not None:
            self._children.close_settled()
        if self.turn is None and now - self.used_at > limits.HISTORY_KEPT_S:
            self.history = None
            if not self.around.stream.watched:
                self.recent.forget()

    @property
    def busy(self) -> bool:
        """A turn runs, here or below, a command lives, or something waits to be written."""
        commands = self._commands is not None and self._commands.running > 0
        return not self.at_rest or commands or self._recorder.unsaved

    @property
    def at_rest(self) -> bool:
        """Nothing runs, waits to run or to be saved, here and in the sessions below."""
        below = self._children is None or self._children.at_rest
        quiet = self.turn is None and below and not self._recorder.unsaved
        return quiet and not inputs.for_turn(self.state.pending)

    async def handle(self, command: Any) -> Any:  # noqa: PLR0912 # a table of messages
        if isinstance(command, (*requests.FROM_STATE, requests.BeginStep)):
            await self.catch_up()
        match command:
            case requests.Record(changes=changes):
                return await self._record(changes)
            case requests.BeginStep():
                return await self._turns.begin_step(command)
            case requests.Finish():
                return await self._turns.finish(command)
            case requests.Flush():
                return await self.write((), keep=True)
            case requests.WithdrawQuestion(question_id=question_id):
                return await withdraw_question(self, question_id)
            case requests.TurnGone():
                return await self._turns.gone()
            case requests.CommandGone(ended=ended):
                return await self._news.command_ended(ended)
            case requests.ChildDone():
                await self._news.child_done(command)
                return await self.rested()
            case requests.TakeResult(session_id=session_id):
                return await self._news.take_result(session_id)
            case requests.SettleUnstarted():
                return await self._settle_unstarted()
            case requests.Nudge():
                await self._turns.go_on()
                return await self.rested()
            case requests.Send():
                return await self._send(command)
            case requests.EditInput(input_id=input_id, content=content):
                return await self._change_input(*inputs.edited(self.state, input_id, content))
            case requests.WithdrawInput(input_id=input_id):
                return await self._withdraw(input_id)
            case requests.MoveInput(input_id=input_id, before=before):
                return await self.write(inputs.moved(self.state, input_id, before), keep=False)
            case requests.Resume():
                self._turns.release()
                await self.write(inputs.released(self.state), keep=False)
                return await self._turns.go_on()
            case requests.Compact():
                return await self._turns.compact()
            case requests.AnswerApproval():
                return await answer_approval(self, command)
            case requests.AnswerQuestion():
                return await answer_question(self, command)
            case requests.Configure(settings=settings):
                return await configure(self, settings)
            case _:
                raise TypeError(f"{self} does not know {command!r}")

    def interrupt(self, turn_id: str | None = None, sent: Collection[str] = ()) -> bool:
        """Interrupt the running turn at once; False when it (or that turn) does not run.

        Also one that has taken one of the messages ``sent``; those of them that wait are held.
        Synchronous: never queued behind an append. The turn's clean-up follows, and the next turn
        waits for it. Harmless when repeated.
        """
        return self._turns.interrupt(turn_id, sent)

    async def _send(self, send: requests.Send) -> InputInfo:
        if (known := inputs.known(self.state, send)) is not None:
            return known
        new = inputs.accepted(self.state, send)
        self._turns.release()
        if self.turn is not None:
            changes = [*inputs.released(self.state), input_change(self.id, new)]
            await self.write(changes, keep=False)
            return new
        self.around.definitions.agent(self.info.agent)
        await self._turns.begin([*self.state.pending, new])
        return self.state.queue.get(new.id) or replace(new, state="consumed")

    async def _change_input(self, old: InputInfo, new: InputInfo) -> InputInfo:
        await self.write([input_change(self.id, new, old)], keep=False)
        return new

    async def _withdraw(self, input_id: str) -> InputInfo:
        old = inputs.find_waiting(self.state, input_id)
        new = await self._change_input(old, replace(old, state="withdrawn"))
        self.outcomes.settle((old.client_id,), NotPending(f"input {input_id} was withdrawn"))
        return new

    async def catch_up(self) -> None:
        """Let the state say what the log says, before something is computed from it.

        Also closes a turn that was refused for the disk's sake but whose append has landed.
        Raises `NotDurable`.
        """
        await self.write((), keep=True)
        recorded = self.state.head.turn
        if self.turn is None and recorded is not None and recorded.state == "running":
            await self.write(self._recovery(), keep=True)

    def _recovery(self) -> list[Change]:
        """Return the changes that settle the state; the places of their items are taken."""
        changes = recovery_changes(self.state)
        places = [one.event.item.at for one in changes if isinstance(one.event, ItemChanged)]
        self._last_at = max(self._last_at, *places, 0)
        return changes

    async def _record(self, changes: Sequence[Change]) -> None:
        """Write what the turn's calls want to record, all that waits in one append."""
        others = self.more_reports(requests.Record)
        together = [*changes, *(change for other, _ in others for change in other.changes)]
        failure: Refused | None = Stopping(f"{self} crashed")
        try:
            await self.write(together, keep=True)
            failure = None
        except NotDurable as refused:
            failure = refused
            raise
        finally:
            for _, answer in others:
                answer(outcome.Error(failure) if failure else outcome.Value(None))

    def due_checkpoint(self) -> list[Change]:
        """Between steps, when the log has grown enough: opening costs what follows the last one."""
        if self.state.open or self._recorder.unsaved or not self.log.checkpoint_due:
            return []
        self.state.head = replace(self.state.head, reads=self.files.noted_reads())
        return [Change(self.state.checkpoint(), None)]

    async def rested(self) -> None:
        """Tell those who wait when the session may have come to rest; the parent, when it has."""
        self.outcomes.notify()
        if self._done is not None and self.at_rest and self.state.head.turn is not None:
            self._done(self, await self.last_result())

    def nudge_later(self) -> None:
        """Try again, after a while, to write what could not be written."""
        self.spawn(self._nudge_later)

    async def _nudge_later(self) -> None:
        await trio.sleep(limits.SAVE_RETRY_MAX_S)
        self.report(requests.Nudge())

    @property
    def commands(self) -> SessionCommands:
        if self._commands is None:
            self._commands = SessionCommands(
                self.children,
                session_id=self.id,
                events=CommandNews(self),
                open_blob=self.files.open_blob,
                now_ms=now_ms,
            )
        return self._commands

    @property
    def command_infos(self) -> tuple[CommandInfo, ...]:
        """The commands that run in the background, oldest first."""
        return self._commands.infos() if self._commands is not None else ()

    def find_command(self, command_id: str) -> SessionCommand | None:
        """Return a command that runs or ended lately."""
        return self._commands.find(command_id) if self._commands is not None else None

    @property
    def children_table(self) -> Children:
        if self._children is None:
            self._children = Children(self)
        return self._children

    async def settled(self) -> TurnResult:
        """Wait for rest; return how the last turn ended. Cancel: only stops waiting."""
        while not self.at_rest:
            if self._ended:
                raise Stopping(f"{self} was closed before its work ended")
            await self.outcomes.news()
        return await self.last_result()

    async def last_result(self) -> TurnResult:
        """Return how the last turn ended; raises `BadRequest` when there was none."""
        turn = self.state.head.turn
        if turn is None:
            raise BadRequest(f"{self} has not run yet")
        return await self.outcomes.of(turn.id)

    async def _settle_unstarted(self) -> None:
        if self.state.head.turn is None:
            turn = never_ran(self.id, self.around.definitions.instance)
            await self.write([turn_change(self.id, turn)], keep=False)

    def next_at(self) -> int:
        """Return the next place; synchronous, so that places are given in order of appearance."""
        self._last_at += 1
        return self._last_at

    async def history_for(self, model: Model, turn_id: str) -> History:
        """Return the history before a turn, encoded for a model; kept, or read from the log."""
        history, self.history = self.history, None
        if history is not None and history.fits(model, self.state.head.context_at):
            return history
        return await SessionHistory(self.log).read(model, (turn_id, 1))

    async def write(self, changes: Sequence[Change], *, keep: bool) -> None:
        try:
            await self._recorder.write(changes, keep=keep)
        except NotDurable as failure:
            if self._recorder.unsaved:
                self._note_unsaved(str(failure))
            raise
        self._note_unsaved(None)

    def _note_unsaved(self, reason: str | None) -> None:
        if reason != self.unsaved:
            self.unsaved = reason
            self.publish(Unsaved(session_id=self.id, reason=reason))

    def publish(self, event: Event) -> None:
        self.around.stream.publish(event)

    def _publish_change(self, change: Change) -> None:
        event = change.event
        self.around.noted()
        if not isinstance(event, ItemChanged):
            if event is not None:
                self.publish(event)
            return
        item = public_item(replace(event.item, session_id=self.id))
        self.live.end(item.id)
        self.recent.note(item)
        self.publish(ItemChanged(item=item))
        if isinstance(item, SettingsChange):
            self.publish(SettingsChanged(session_id=self.id, settings=item.settings))
        elif isinstance(item, Approval | Question):
            self.around.decision_changed(self, item)

    def snapshot(self) -> SessionSnapshot:
        """Return what clients see now; `RecentItems.load` comes first."""
        return snapshot_of(self)
