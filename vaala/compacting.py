"""`Compacting`: makes the history of a running turn shorter, as durable items of its open step.

Old results shrink first; then the oldest turns are replaced by a summary that the model writes, or
are left out. The transcript stays whole, and nothing has changed until an item is written down.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from vaala.agent import limits
from vaala.agent.context import Context, ContextItem, context_of, shortened
from vaala.agent.fitting import SizedStep, first_that_fits, kept_of, saved_by, upto_whole
from vaala.agent.history import History, messages_of, steps_of
from vaala.agent.summary import earlier_summary
from vaala.changes import item_change, now_ms, replace
from vaala.models.base import Model, ModelFailure
from vaala.session_history import SessionHistory
from vaala.summarizing import Summarizing
from vaala.text import scrub
from vaala.tools.base import ToolFailure
from vaala_protocol.content import text_of
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, ContextCut, ContextSummary, Item, ToolCall

if TYPE_CHECKING:
    from vaala.turn import Turn

log = logging.getLogger(__name__)


class Room(Struct, frozen=True):
    """Bytes of a request."""

    fixed: int
    """System prompt, tools and the open step: what cannot become less."""
    aim: int
    """What all of it shall have."""
    window: int


class _Plan(Struct, frozen=True):
    """What is left out, and what that makes of the history."""

    cut: ContextCut
    covered: list[Item]
    kept: list[Item]
    """What stood in the place of all that was left out until now."""


class Compacting:
    """Of one turn and its model. Cancel, at any moment: what is not written down never was."""

    def __init__(self, turn: Turn, model: Model) -> None:
        self._turn = turn
        self._session = turn.session
        self._model = model
        self._logged = SessionHistory(turn.session.log)
        self._failures = 0

    async def make_room(self, room: Room) -> bool:
        """Make the history as short as ``room`` says; False when it cannot become shorter.

        Where no summary can be had, the history is cut without one.
        """
        steps = await self._steps()
        before = room.fixed + self._size(self._history.context) + _sum(steps)
        upto = upto_whole(steps, self._turn.id, int(room.aim * limits.WHOLE_SHARE))
        saved = saved_by(steps, upto)
        if saved and before - saved <= room.aim and await self._shorten(steps, upto, before):
            await self._fold()
            return True
        changed = await self._leave_out(steps, upto, before, room)
        if changed:
            await self._fold()
        return changed

    async def compact_all(self, window: int) -> ContextSummary | None:
        """Replace all closed steps by a summary; None when there is nothing to be replaced.

        Raises `ModelFailure` when the model writes no summary: then nothing has changed.
        """
        steps = await self._steps()
        if not any(isinstance(item, ToolCall | AssistantMessage) for item in _items(steps)):
            return None
        before = self._size(self._history.context) + _sum(steps)
        plan = self._plan(steps, len(steps), await self._logged.kept(), window)
        summary = await self._summary(plan, window)
        after = self._size(_context(summary, plan))
        written = await self._record(summary, before, after)
        await self._fold()
        assert isinstance(written, ContextSummary)
        return written

    async def shorten_last(self, room: Room) -> bool:
        """Shorten the results of the step that is to be answered; False: that changes nothing."""
        steps = await self._steps()
        last = [step for step in steps[-1:] if step.turn_id == self._turn.id]
        calls = [item for item in _items(last) if isinstance(item, ToolCall)]
        if not calls:
            return False
        lead = self._size(self._history.context)
        # Text is about twice as long as JSON in the worst of what is common: quoted code.
        share = (room.aim - room.fixed - lead) // (2 * len(calls))
        before = room.fixed + lead + _sum(steps)
        size = max(limits.RESULT_KEPT_BYTES_MIN, share)
        changed = await self._shorten(last, last[0].last_at, before, size)
        if changed:
            await self._fold()
        return changed

    async def _leave_out(
        self, steps: Sequence[SizedStep], upto: int, before: int, room: Room
    ) -> bool:
        kept = await self._logged.kept()
        reserve = min(limits.SUMMARY_BYTES_MAX, int(room.window * limits.SUMMARY_SHARE))
        left = room.aim - room.fixed - reserve
        lead = self._size(self._history.context)
        number = first_that_fits(steps, self._turn.id, upto, left - lead)
        if number:
            # What stays of the steps that are left out takes room, too.
            plan = self._plan(steps, number, kept, room.window)
            lead = self._size(_context(plan.cut, plan))
            number = first_that_fits(steps, self._turn.id, upto, left - lead)
        tail = steps[number:]
        changed = bool(saved_by(tail, upto)) and await self._shorten(tail, upto, before)
        if not number:
            return changed
        plan = self._plan(steps, number, kept, room.window)
        written = await self._summary_or_cut(plan, room.window)
        shown = (step.short if step.last_at <= upto else step.size for step in tail)
        after = room.fixed + self._size(_context(written, plan)) + sum(shown)
        await self._record(written, before, after)
        return True

    async def _summary_or_cut(self, plan: _Plan, window: int) -> ContextItem:
        if not self._turn.agent.compaction.auto:
            return replace(plan.cut, reason="summaries are off")
        if self._failures >= limits.SUMMARY_FAILURES_MAX:
            return replace(plan.cut, reason="summaries have failed too often in this turn")
        try:
            return await self._summary(plan, window)
        except ModelFailure as failure:
            self._failures += 1
            return replace(plan.cut, reason=f"no summary: {failure.message}")

    async def _summary(self, plan: _Plan, window: int) -> ContextSummary:
        """Return the cut with a summary, that takes up those before it. Raises `ModelFailure`."""
        writer = Summarizing(self._turn, self._model)
        earlier = {item.at for item in plan.kept if isinstance(item, ContextSummary)}
        text = await writer.write(earlier_summary(plan.kept), plan.covered, window)
        cut = plan.cut
        return ContextSummary(
            id=cut.id, at=cut.at, created_at=cut.created_at, turn_id=cut.turn_id, step=cut.step,
            session_id=cut.session_id, covers=cut.covers,
            keeps=tuple(place for place in cut.keeps if place not in earlier),
            kept_bytes=cut.kept_bytes, model=self._model.name, usage=writer.usage, text=text,
        )  # fmt: skip

    async def _steps(self) -> list[SizedStep]:
        """Return the closed steps that are in requests, with their sizes."""
        context = self._history.context
        found: list[SizedStep] = []
        async for items in self._session.log.history(self._session.state.head.context_from):
            for step in steps_of(items):
                shown = context.shown(step)
                if shown and (step[0].turn_id, step[0].step) != self._turn.open_step:
                    found.append(self._sized(shown, context))
        return found

    def _sized(self, items: list[Item], context: Context) -> SizedStep:
        upto = max(item.at for item in items)
        less = (*context.shortened, (upto, limits.RESULT_KEPT_BYTES))
        sizes = [
            len(self._model.encode(messages_of(items, "user", (), one)))
            for one in (context, replace(context, shortened=less))
        ]
        return SizedStep(items[0].turn_id, tuple(items), sizes[0], min(sizes))

    @property
    def _history(self) -> History:
        assert self._turn.history is not None
        return self._turn.history

    def _size(self, context: Context) -> int:
        return len(self._model.encode(context.lead)) if context.lead else 0

    def _plan(
        self, steps: Sequence[SizedStep], number: int, kept: list[Item], window: int
    ) -> _Plan:
        covered = _items(steps[:number])
        keeps = kept_of([*kept, *covered], self._session.state.head, self._turn.id)
        covers = steps[number - 1].last_at
        cut = replace(self._new_cut(covers), covers=covers, keeps=keeps)
        plan = _Plan(cut, covered, kept)
        share = int(window * limits.KEPT_SHARE)
        if keeps and self._size(_context(cut, plan)) > share:
            bound = max(limits.MESSAGE_KEPT_BYTES_MIN, share // len(keeps))
            plan = replace(plan, cut=replace(cut, kept_bytes=bound))
        return plan

    def _new_cut(self, after: int) -> ContextCut:
        """Return a cut that changes nothing yet; it gets its place when it is written down."""
        turn = self._turn
        return ContextCut(
            id=new_id(), at=after + 1, created_at=now_ms(), turn_id=turn.id,
            step=turn.step_number, session_id=self._session.id, covers=0,
        )  # fmt: skip

    async def _shorten(
        self,
        steps: Sequence[SizedStep],
        upto: int,
        before: int,
        bytes_max: int = limits.RESULT_KEPT_BYTES,
    ) -> bool:
        """Shorten results up to a place; False: they are short, or cannot be kept whole."""
        saved = 0
        for call in _items(step for step in steps if step.last_at <= upto):
            if not isinstance(call, ToolCall):
                continue
            sent = self._history.context.result_of(call)
            gain = len(text_of(sent)) - len(text_of(shortened(call, bytes_max)))
            if gain <= 0:
                continue
            saved += gain
            try:
                await self._session.files.keep(call.id, scrub(text_of(call.result)).encode())
            except ToolFailure as failure:
                log.warning("results stay as they are: %s", failure)
                return False
        if not saved:
            return False
        cut = replace(
            self._new_cut(upto), shortens=upto, result_bytes=bytes_max,
            reason="old results of calls are shortened",
        )  # fmt: skip
        await self._record(cut, before, before - saved)
        return True

    async def _record(self, item: ContextItem, before: int, after: int) -> ContextItem:
        tokens = self._session.estimates.tokens
        item = replace(
            item,
            at=self._session.next_at(),
            completed_at=now_ms(),
            tokens_before=tokens(self._model, before),
            tokens_after=tokens(self._model, after),
        )
        self._turn.items[item.id] = item
        await self._turn.record([item_change(item)])
        return item

    async def _fold(self) -> None:
        """Fold the history anew, as it is in the log now."""
        turn = self._turn
        turn.history = await self._logged.read(self._model, turn.open_step)


def _items(steps: Iterable[SizedStep]) -> list[Item]:
    return [item for step in steps for item in step.items]


def _sum(steps: Iterable[SizedStep]) -> int:
    return sum(step.size for step in steps)


def _context(item: ContextItem, plan: _Plan) -> Context:
    return context_of([item], [*plan.kept, *plan.covered])
