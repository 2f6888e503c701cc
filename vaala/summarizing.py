"""`Summarizing`: the model calls for a summary. No client sees what they say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import trio

from vaala.agent import limits
from vaala.agent.summary import parts_of, summary_request
from vaala.agent.text_reader import TextReader
from vaala.model_options import asked_of
from vaala.models.base import Model, ModelFailure, ModelRequest
from vaala.models.caller import Answered, Caller
from vaala.models.retry import RetryPolicy
from vaala.observer import ModelWork
from vaala_protocol.items import Item
from vaala_protocol.settings import Usage

if TYPE_CHECKING:
    from vaala.turn import Turn


class Summarizing:
    """For one summary, by the model of a turn; what it used counts for the turn."""

    def __init__(self, turn: Turn, model: Model) -> None:
        self._turn = turn
        self._model = model
        self.usage = Usage()
        """Of all calls so far, however they ended."""

    async def write(self, earlier: str, items: Iterable[Item], window: int) -> str:
        """Return a summary of ``items`` that takes up an earlier one; ``window`` is in bytes.

        Bounded in calls, attempts, time and length. Raises `ModelFailure` when there is none.
        """
        bytes_max = min(limits.SUMMARY_BYTES_MAX, int(window * limits.SUMMARY_SHARE))
        tokens = self._turn.session.estimates.tokens(self._model, window) // 8
        tokens_max = max(limits.SUMMARY_TOKENS_MIN, min(limits.SUMMARY_TOKENS_MAX, tokens))
        options = asked_of(self._turn.info.settings, self._model).options
        text = earlier
        try:
            with trio.fail_after(limits.SUMMARY_S_MAX):
                for part in parts_of(items, int(window * limits.TRANSCRIPT_SHARE)):
                    request = summary_request(text, part, bytes_max, tokens_max, options)
                    text = await self._ask(request, bytes_max)
        except trio.TooSlowError:
            late = f"the summary took more than {limits.SUMMARY_S_MAX:g} s"
            raise ModelFailure("incomplete", late) from None
        return text

    async def _ask(self, request: ModelRequest, bytes_max: int) -> str:
        policy = RetryPolicy(attempts_max=limits.SUMMARY_ATTEMPTS_MAX)
        waits, model = self._turn.session.waits, self._model
        caller = Caller(
            model,
            self._turn.definitions.rng(),
            lambda reason, seconds: waits.on(model.name, reason, timeout_s=seconds),
            policy,
        )
        while True:
            try:
                async with caller.turn() as answered:
                    return await self._attempt(request, bytes_max, caller.attempt, answered)
            except ModelFailure as failure:
                if (wait_s := caller.wait_s(failure)) is None:
                    raise
                await caller.rest(failure, wait_s)

    async def _attempt(
        self, request: ModelRequest, bytes_max: int, attempt: int, answered: Answered
    ) -> str:
        model, turn = self._model, self._turn
        reader = TextReader("summary")
        work = ModelWork(model.provider, model.name, turn.step_number, attempt)
        with turn.definitions.observer.model_call(work) as seen:
            try:
                text = await reader.read(model, request, bytes_max, answered)
                seen.ended("completed")
                return text
            except ModelFailure as failure:
                seen.ended("error", failure.kind)
                raise
            finally:
                if reader.usage != Usage():
                    seen.used(model.name, reader.usage)
                    turn.use(model.name, reader.usage)
                    self.usage += reader.usage
