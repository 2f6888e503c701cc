"""`Asking`: the model calls of a turn, fitted to the window, and made again where that helps."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from vaala.agent import limits
from vaala.agent.answer import Answer, AnswerBuilder, Place, stream_answer
from vaala.agent.history import History
from vaala.agent.prompt import system_prompt
from vaala.changes import item_change, now_ms
from vaala.compacting import Compacting, Room
from vaala.endings import Ending
from vaala.model_options import asked_of, explained
from vaala.models.base import Model, ModelFailure, ModelRequest
from vaala.models.caller import Answered, Caller
from vaala.models.retry import last_words
from vaala.observer import ModelWork
from vaala_protocol.base import encode
from vaala_protocol.ids import new_id
from vaala_protocol.items import ModelError
from vaala_protocol.settings import Usage

if TYPE_CHECKING:
    from vaala.turn import Turn


class Sizes(Struct, frozen=True):
    """The bytes of a request, by part."""

    instructions: int
    tools: int
    history: int
    open_step: int

    @property
    def total(self) -> int:
        return self.instructions + self.tools + self.history + self.open_step


class Asking:
    """Asks one model for one turn. ``builder`` has what a stream says while it runs."""

    def __init__(self, turn: Turn, model: Model) -> None:
        self._turn = turn
        self._session = turn.session
        self._model = model
        self._estimates = turn.session.estimates
        self._compacting = Compacting(turn, model)
        self.builder: AnswerBuilder | None = None
        """Of the answer that comes now, until the turn has taken it."""

    async def ask(self) -> Answer | Ending:
        """Call the model, again where the retry policy says so or with a shorter history.

        Cancel: the request is closed at once; ``builder`` holds what came.
        """
        if (ending := await self._fit()) is not None:
            return ending
        caller = Caller(self._model, self._turn.definitions.rng(), self._waiting)
        overflows = 0
        while True:
            place = Place(
                self._session.id, self._turn.id, self._turn.step_number, self._session.next_at
            )
            self.builder = builder = AnswerBuilder(self._model, place, self._session.live)
            try:
                async with caller.turn() as answered:
                    await self._attempt(builder, caller.attempt, answered)
            except ModelFailure as failure:
                if failure.kind == "context_overflow":
                    overflows += 1
                    if (ending := await self._overflowed(builder, failure, overflows)) is not None:
                        return ending
                    continue
                if (wait_s := caller.wait_s(failure)) is None:
                    return await self._failed(failure, caller.attempt)
                builder.drop()
                await self._record_failure(failure, caller.attempt, wait_s)
                await caller.rest(failure, wait_s)
            else:
                return builder.answer(partial=False)

    async def compact(self) -> Ending:
        """Replace all that was said by a summary, as the only work of the turn."""
        window = self._estimates.window(self._model)
        total = self._sizes().total
        size = total if window is None else self._estimates.size(self._model, window)
        try:
            with self._session.waits.on(self._model.name, "compacting"):
                summary = await self._compacting.compact_all(max(size, total))
        except ModelFailure as failure:
            return Ending("failed", "failed", f"Not compacted: {failure.message}")
        if summary is None:
            return Ending("failed", "failed", "There is nothing to compact.")
        self._estimates.settle(self._model, self._sizes().total)
        before, after = summary.tokens_before, summary.tokens_after
        text = f"Compacted from about {before:,} to {after:,} tokens."
        return Ending("completed", "end_turn", text)

    def _waiting(self, reason: str, seconds: float | None) -> AbstractContextManager[None]:
        return self._session.waits.on(self._model.name, reason, timeout_s=seconds)

    async def _attempt(self, builder: AnswerBuilder, attempt: int, answered: Answered) -> None:
        model, size = self._model, self._sizes().total
        work = ModelWork(model.provider, model.name, self._turn.step_number, attempt)
        with self._turn.definitions.observer.model_call(work) as seen:
            try:
                request, waits = self._request(size), self._session.waits
                await stream_answer(model, request, builder, waits, answered)
                self._estimates.reported(model, size, builder.usage)
                await self._session.cuts.look(self._turn, model, size, builder.usage)
                seen.ended("completed")
            except ModelFailure as failure:
                seen.ended("error", failure.kind)
                raise
            finally:
                # What was used is paid for, however it ended.
                if (used := builder.usage) != Usage():
                    seen.used(model.name, used)
                    self._turn.use(model.name, used)

    def _request(self, size: int) -> ModelRequest:
        window = self._estimates.window(self._model)
        history, messages = self._history.request(self._turn.items.values())
        asked = asked_of(self._turn.info.settings, self._model)
        return ModelRequest(
            instructions=self._instructions(),
            tools=self._turn.offered_tools().specs,
            history=history,
            messages=messages,
            effort=asked.effort,
            output_tokens_max=asked.output_tokens_max,
            options=asked.options,
            output=None if self._turn.output is None else self._turn.output.wanted,
            room_tokens=None if window is None else self._room(window, size),
        )

    def _room(self, window: int, size: int) -> int:
        """Return what is left for the answer; never so little that none could come."""
        left = window - self._estimates.tokens(self._model, size)
        return max(limits.ANSWER_TOKENS_MIN, left)

    def _instructions(self) -> str:
        today = datetime.now(UTC).astimezone().date()
        locations = self._session.around.locations
        return system_prompt(self._turn.agent.instructions, locations, today)

    @property
    def _history(self) -> History:
        assert self._turn.history is not None
        return self._turn.history

    def _sizes(self) -> Sizes:
        messages = self._history.open_messages(self._turn.items.values())
        wanted = None if self._turn.output is None else self._turn.output.wanted.schema
        return Sizes(
            instructions=len(self._instructions().encode())
            + (len(encode(wanted)) if wanted else 0),
            tools=len(encode(self._turn.offered_tools().specs)),
            history=self._history.size_bytes,
            open_step=len(self._model.encode(messages)),
        )

    async def _fit(self) -> Ending | None:
        """Make the history shorter when the next request comes near the window.

        Not again before it has grown, where that cannot help (case C1-4).
        """
        model, estimates = self._model, self._estimates
        window = estimates.window(model)
        if window is None:
            return None
        total = self._sizes().total
        if estimates.tokens(model, total) < self._turn.agent.compaction.at * window:
            return None
        size = estimates.size(model, window)
        if estimates.grown(model, total) >= limits.WORTH_SHARE * size:
            await self._lessen(size)
        sizes = self._sizes()
        if estimates.surely(model, sizes.total) > window:
            return Ending("failed", "failed", self._too_large(sizes, window))
        return None

    async def _overflowed(
        self, builder: AnswerBuilder, failure: ModelFailure, times: int
    ) -> Ending | None:
        """The model refused a request for its length: make it shorter, or return the end."""
        model, estimates = self._model, self._estimates
        total = self._sizes().total
        estimates.refused(model, total, failure.message)
        if times > limits.OVERFLOWS_MAX:
            return await self._failed(failure, times)
        builder.drop()
        await self._record_failure(failure, times, 0.0)
        window = estimates.window(model)
        assert window is not None
        if await self._lessen(min(total, estimates.size(model, window))):
            return None
        return Ending("failed", "failed", self._too_large(self._sizes(), window))

    async def _lessen(self, window: int) -> bool:
        """Make the history fit a window of so many bytes; False: it cannot become shorter."""
        compaction = self._turn.agent.compaction
        sizes = self._sizes()
        fixed = sizes.total - sizes.history
        most = int(window * compaction.at)
        with self._session.waits.on(self._model.name, "compacting"):
            room = Room(fixed, int(window * min(compaction.aim, compaction.at)), window)
            changed = await self._compacting.make_room(room)
            if self._sizes().total > most:
                room = Room(fixed, most, window)
                changed = await self._compacting.shorten_last(room) or changed
        self._estimates.settle(self._model, self._sizes().total)
        return changed

    def _too_large(self, sizes: Sizes, window: int) -> str:
        model = self._model
        parts = (sizes.instructions, sizes.tools, sizes.history + sizes.open_step)
        system, tools, step = (self._estimates.tokens(model, part) for part in parts)
        return (
            f"The request cannot be made to fit the window of {model.name}, {window:,} tokens: the "
            f"system prompt has about {system:,} tokens, the tools {tools:,}, and the last step "
            f"{step:,}. Choose a model with a larger window, or give it less at once."
        )

    async def _failed(self, failure: ModelFailure, attempt: int) -> Ending:
        """The last failure ends the turn; what was said before it is kept, marked partial."""
        failure = explained(failure, self._turn, self._model)
        await self._record_failure(failure, attempt, None)
        now = datetime.now(UTC).astimezone()
        return Ending("failed", "failed", last_words(failure, attempt, now))

    async def _record_failure(
        self, failure: ModelFailure, attempt: int, delay_s: float | None
    ) -> None:
        now = now_ms()
        error = ModelError(
            id=new_id(), at=self._session.next_at(), turn_id=self._turn.id,
            step=self._turn.step_number, created_at=now, completed_at=now, error=failure.kind,
            message=failure.message, attempt=attempt,
            retry_in_ms=None if delay_s is None else round(delay_s * 1000),
        )  # fmt: skip
        self._turn.items[error.id] = error
        await self._turn.record([item_change(error)])
