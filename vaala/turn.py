"""`Turn`: one run of the agent loop, in its own cancel scope.

Each step takes what waits for the turn, asks the model, and runs the calls it asks for, all at
once. However the turn ends, its clean-up settles every item of the open step and closes the turn
in one append; the next turn of the session begins after that.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from vaala import limits
from vaala.agent.answer import Answer
from vaala.agent.definition import AgentDefinition
from vaala.agent.guard import LoopGuard
from vaala.agent.history import History
from vaala.asking import Asking
from vaala.calls import CallRunner
from vaala.changes import (
    Change,
    interruption,
    item_change,
    now_ms,
    replace,
    settled,
    step_change,
)
from vaala.definitions import Definitions
from vaala.endings import By, Ending, ending_of, interrupted_ending, over_budget
from vaala.models.base import Model
from vaala.output import OutputCheck
from vaala.questions import Questions
from vaala.requests import BeginStep, Finish, Flush, Record
from vaala.tools.registry import ToolSet
from vaala_protocol.calls import CallDetails
from vaala_protocol.errors import NotDurable, Refused
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, Item, ModelError, Question, ToolCall
from vaala_protocol.settings import Mode, Settings, Usage
from vaala_protocol.state import InputInfo, StepInfo, TurnInfo, TurnResult

if TYPE_CHECKING:
    from vaala.session import Session

log = logging.getLogger(__name__)


class Turn:
    """Owned by its session. ``interrupt`` and ``decided`` are called by the session's loop."""

    stops_queue = True
    """When it fails, what waits in the queue is held until a person goes on."""

    def __init__(
        self, session: Session, definitions: Definitions, info: TurnInfo, items: Sequence[Item]
    ) -> None:
        self.session = session
        self.definitions = definitions
        """Those it began with, whatever comes meanwhile."""
        name = session.info.agent
        self.agent = definitions.agents.get(name) or AgentDefinition(name, "")
        self.info = info
        self.step_number = 1
        self.items = {item.id: item for item in items}
        """Items of the open step, as they are or are about to be in the log."""
        self.asked = Settings()
        """What its first message asked for."""
        self.own_mode: Mode | None = None
        """The mode that a message of it asked for, whatever the session's is."""
        self.output: OutputCheck | None = None
        """What the last answer has to be, where a message of it asked for that."""
        self.answers: set[str] = set()
        """Client ids of the messages that it took."""
        self.spawned: set[str] = set()
        """Child sessions whose running turns end with this one when it is interrupted."""
        self.closing = False
        self.closed = False
        """Its last entries are written, or kept by the session to be written."""
        self.tools = ToolSet(())
        self.history: History | None = None
        self.result = TurnResult(turn=info, text="")
        self._scope = trio.CancelScope()
        self._by: By | None = None
        self._step: StepInfo | None = None
        self._usage: dict[str, Usage] = {}
        self._asking: Asking | None = None
        self._text = ""
        self._mismatch: str | None = None
        """What the model is told at the beginning of the next step."""
        self._steered = False
        """The next step's items were taken already, when the last one would have been the end."""
        self._asked = 0
        self.questions = Questions(self)
        self._calls = CallRunner(self)

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def mode(self) -> Mode:
        """The mode in force: an override lasts its turn, a change of the session's is at once."""
        session = self.session.state.head.settings
        return self.own_mode or session.mode or self.info.settings.mode or "ask"

    def takes(self, inputs: Iterable[InputInfo]) -> None:
        """These inputs are part of the turn now."""
        for taken in inputs:
            self.answers.add(taken.client_id)
            if taken.settings is not None:
                self.own_mode = taken.settings.mode or self.own_mode
            if taken.output_schema is not None:
                self.output = OutputCheck(taken.output_schema)

    def interrupt(self, by: By) -> bool:
        """End the turn at once; True when that is under way. Safe to repeat."""
        if self.closed:
            return False
        if self._by is None and not self.closing:
            self._by = by
            self.closing = True
            self._scope.cancel()
            for child_id in self.spawned:
                if (child := self.session.around.sessions.get(child_id)) is not None:
                    child.interrupt()
        return True

    def decided(self, approval_id: str, call: ToolCall) -> None:
        """An approval of this turn was answered, and written down."""
        self._calls.decided(approval_id, call)

    def answered(self, question: Question) -> None:
        """A question of this turn was answered, and that is written down."""
        self.questions.answered(question)

    async def run(self) -> None:
        """Run to the end, clean-up included. A bug in the loop fails the turn, not the session."""
        ending = None
        if (seconds := self.agent.budgets.seconds_max) is not None:
            self._scope.deadline = trio.current_time() + seconds
        try:
            with self._scope:
                ending = await self._work()
        except Exception as error:
            log.exception("turn %s failed", self.id)
            ending = Ending("failed", "failed", f"internal error: {error!r}")
        finally:
            timed_out = self._scope.cancelled_caught and self._by is None
            self._by = self._by or ("budget" if timed_out else "shutdown")
            self.closing = True
            if not self.closed:
                with trio.CancelScope(shield=True):
                    await self._close(ending)

    async def _work(self) -> Ending | None:
        """Run steps until the turn ends. None: it is closed already."""
        try:
            model, asking = await self.prepared()
        except Refused as refused:
            return Ending("failed", "failed", str(refused))
        guard = LoopGuard()
        while True:
            answer = await self._ask(asking, model)
            if isinstance(answer, Ending):
                return answer
            ending = await self._step_with(model, answer, guard)
            if self.closed or ending is not None:
                return ending
            spent = self._usage.values()
            if (ending := over_budget(self.agent.budgets, self.step_number, spent)) is not None:
                return ending
            if not self._steered:
                self._open_step(await self._durable(BeginStep(self.id, self.step_number)))
            self._steered = False
            if self._mismatch is not None:
                await self._tell_mismatch(self._mismatch)

    async def prepared(self) -> tuple[Model, Asking]:
        """Get what the turn works with: tools, model, history. Raises `Refused`."""
        # A message that has waited may find its agent gone from the definitions.
        self.definitions.agent(self.agent.name)
        self.tools = self.definitions.tools.only(self.agent.tools)
        keys = self.session.around.environment.keys
        model, _ = await self.definitions.models.resolve_with(self.info.settings.model, keys)
        self.history = await self.session.history_for(model, self.id)
        self._asking = Asking(self, model)
        return model, self._asking

    async def _step_with(self, model: Model, answer: Answer, guard: LoopGuard) -> Ending | None:
        """Take an answer, run its calls and close the step."""
        mismatch = None
        if self.output is not None and not answer.calls:
            judged = await self.output.judge(answer)
            answer, mismatch = judged.answer, judged.problem
        plans, calls = await self._calls.plan(answer)
        self._take([*answer.items, *calls])
        said = [item_change(item) for item in (*answer.items, *calls)]
        assert self._step is not None
        answered = replace(
            self._step,
            first_byte_at=answer.first_byte_at,
            answered_at=now_ms(),
            finish=answer.finish.reason if answer.finish else None,
            usage=answer.usage,
        )
        if not answer.calls:
            return await self._end_or_go_on(answer, said, answered, mismatch)
        done = replace(answered, ended_at=now_ms())
        self._step = answered
        if plans:
            await self.record([*said, step_change(self.session.id, answered)])
            await self._calls.run(plans, answered)
        else:
            await self.record([*said, step_change(self.session.id, done)])
        reason = guard.note(item for item in self.items.values() if isinstance(item, ToolCall))
        self._close_step()
        if reason is not None:
            return Ending("completed", "loop", f"Stopped: {reason}.")
        return None

    async def _end_or_go_on(
        self, answer: Answer, said: list[Change], answered: StepInfo, mismatch: str | None
    ) -> Ending | None:
        """An answer without calls ends the turn, unless a steer waits or it is not what was asked
        for and the model can be told so."""
        ending = ending_of(answer)
        done = replace(answered, ended_at=now_ms())
        changes = [*said, step_change(self.session.id, done)]
        if mismatch is not None and ending.stop_reason in ("end_turn", "max_tokens"):
            assert self.output is not None
            text = f"The answer does not match the output schema: {mismatch}"
            if self.output.may_tell():
                await self.record(changes)
                self._close_step()
                self._mismatch = text
                return None
            ending = Ending("failed", "failed", text)
        finish = self._finish(ending, changes, unless_steered=ending.stop_reason == "end_turn")
        items = await self._send_finish(finish)
        self._close_step()
        if not self.closed:
            self._open_step(items)
            self._steered = True
        return None

    async def _tell_mismatch(self, text: str) -> None:
        """Begin the open step with what was wrong with the answer before it."""
        assert self.output is not None
        self._mismatch = None
        now = now_ms()
        told = ModelError(
            id=new_id(), at=self.session.next_at(), turn_id=self.id, step=self.step_number,
            created_at=now, completed_at=now, error="invalid_output", message=text,
            attempt=self.output.told, retry_in_ms=0,
        )  # fmt: skip
        self.items[told.id] = told
        await self.record([item_change(told)])

    async def _ask(self, asking: Asking, model: Model) -> Answer | Ending:
        self._asked += 1
        self._step = StepInfo(
            turn_id=self.id, number=self.step_number, model=model.name, started_at=now_ms()
        )
        return await asking.ask()

    def use(self, model: str, usage: Usage) -> None:
        """Count what a model call of the turn used."""
        self._usage[model] = self._usage.get(model, Usage()) + usage

    def offered_tools(self) -> ToolSet:
        """Return the tools that the next model call is told of."""
        if self.agent.tools is None:
            self.tools = self.session.around.services.with_tools(self.definitions.tools)
        return self.tools

    @property
    def open_step(self) -> tuple[str, int]:
        return self.id, self.step_number

    def _take(self, items: Sequence[Item]) -> None:
        """From here on the answer is the turn's: its items go to the log, whatever happens."""
        if self._asking is not None:
            self._asking.builder = None
        self.items.update({item.id: item for item in items})
        said = "".join(item.text for item in items if isinstance(item, AssistantMessage))
        self._text = said or self._text

    def _close_step(self) -> None:
        assert self.history is not None
        self.history.close(self.items.values())
        self.items = {}
        self._step = None
        self.step_number += 1

    def _open_step(self, items: Sequence[Item]) -> None:
        self.items = {item.id: item for item in items}

    async def note_details(self, call_id: str, details: CallDetails) -> None:
        """Write down what a running call is about to do, before it does it; durable on return."""
        before = self.items[call_id]
        assert isinstance(before, ToolCall)
        after = replace(before, details=details, rev=before.rev + 1)
        self.items[call_id] = after
        await self.record([item_change(after, before)])

    async def record(self, changes: Sequence[Change]) -> None:
        """Write changes down; returns when they are durable, however long the disk takes.

        Cancel: the changes are kept by the session and written when that is possible.
        """
        await self._durable(Record(tuple(changes)))

    async def _durable(self, message: BeginStep | Record | Flush) -> Sequence[Item]:
        again = message if isinstance(message, BeginStep) else Flush()
        delay = limits.SAVE_RETRY_FIRST_S
        while True:
            try:
                if isinstance(message, BeginStep):
                    return await self._taken_by(message)
                await self.session.deliver(message)
                return ()
            except NotDurable as failure:
                message = again
                with self.session.waits.on("disk", str(failure), timeout_s=delay):
                    await trio.sleep(delay)
                delay = min(2 * delay, limits.SAVE_RETRY_MAX_S)

    async def _taken_by(self, message: BeginStep | Finish) -> Sequence[Item]:
        try:
            return await self.session.deliver(message)
        except trio.Cancelled:
            # What it took or closed is in the log alone: the next turn reads its history there.
            self.history = None
            raise

    def _finish(self, ending: Ending, changes: Sequence[Change], *, unless_steered: bool) -> Finish:
        interrupted = ending.state == "interrupted"
        final = replace(
            self.info,
            state=ending.state,
            stop_reason=ending.stop_reason,
            interrupted_by=self._by if interrupted else None,
            message=ending.message,
            ended_at=now_ms(),
            steps=self._asked,
            usage=dict(self._usage),
        )
        self.result = TurnResult(turn=final, text=self._text)
        return Finish(final, self.info, tuple(changes), self.step_number + 1, unless_steered)

    async def _send_finish(self, finish: Finish) -> Sequence[Item]:
        delay = limits.SAVE_RETRY_FIRST_S
        while True:
            try:
                return await self._taken_by(finish)
            except NotDurable as failure:
                if self.closed:
                    return ()
                finish = replace(finish, changes=())
                with self.session.waits.on("disk", str(failure), timeout_s=delay):
                    await trio.sleep(delay)
                delay = min(2 * delay, limits.SAVE_RETRY_MAX_S)

    async def _close(self, ending: Ending | None) -> None:
        """Settle the open step and close the turn. Shielded; never raises for the disk.

        What was on its way to the session when the turn was interrupted comes first: an answer to
        an approval changes what is to be settled, and a turn may have been closed with it.
        """
        with suppress(NotDurable):
            await self.session.deliver(Flush())
        if self.closed:
            return
        ending = ending or interrupted_ending(self._by or "user", self.agent.budgets)
        changes = self._broken_answer()
        for item in list(self.items.values()):
            if (done := settled(item, crashed=False, reason=ending.message)) is not None:
                changes.append(item_change(done, item))
                self.items[item.id] = done
        if ending.state == "interrupted":
            final = replace(self.info, interrupted_by=self._by)
            note = interruption(
                final, self.session.next_at(), new_id(), self.step_number, ending.message
            )
            self.items[note.id] = note
            changes.append(item_change(note))
        if self._step is not None:
            done_step = replace(self._step, ended_at=now_ms())
            known = self._step if self._step.answered_at is not None else None
            changes.append(step_change(self.session.id, done_step, known))
        await self._send_finish(self._finish(ending, changes, unless_steered=False))
        if self.history is not None:
            self.history.close(self.items.values())

    def _broken_answer(self) -> list[Change]:
        """Return what a stream that did not end has said: kept, marked partial; calls never run."""
        if self._asking is None or self._asking.builder is None:
            return []
        answer = self._asking.builder.answer(partial=True)
        calls = [
            replace(
                call, state="cancelled", reason="The answer was cut off.", completed_at=now_ms()
            )
            for call in answer.calls
        ]
        items = (*answer.items, *calls)
        self._take(items)
        return [item_change(item) for item in items]


def new_turn(own: Settings | None, session: Settings, instance: str) -> TurnInfo:
    """Return a turn that begins now; ``own`` are the settings that its message asked for."""
    return TurnInfo(
        id=new_id(),
        state="running",
        started_at=now_ms(),
        settings=own.over(session) if own else session,
        instance=instance,
    )
