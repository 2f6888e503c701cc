"""`Driver`: runs prompts in one conversation, one after the other, and watches what happens."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Any

import trio
from msgspec import Struct

from vaala.cli.approver import Approver
from vaala.cli.exits import DONE, INTERRUPTED, REFUSED
from vaala.cli.outcome import code_of
from vaala.cli.output import Output
from vaala.cli.progress import Progress, Update, View
from vaala.interface import Conversation
from vaala_protocol.errors import NotPending
from vaala_protocol.ids import new_id
from vaala_protocol.settings import Settings
from vaala_protocol.state import TurnInfo, TurnResult

CATCH_UP_S = 5.0
"""How long the last updates of an ended turn are waited for."""


class Driver(Struct, frozen=True):
    conversation: Conversation
    view: View
    output: Output
    progress: Progress
    approver: Approver
    settings: Settings | None
    """Laid over what the conversation runs with, for these prompts only."""
    output_schema: dict[str, Any] | None = None
    """What the answer to each of them has to match."""

    async def run(self, prompts: Sequence[str], updates: AsyncIterable[Update]) -> int:
        """Run the prompts until one does not end well; return the exit code.

        Raises `ReaderGone` (in a group) when nobody reads the answer any more. Cancel: the turn
        is interrupted when the conversation closes.
        """

        async def one_after_the_other() -> int:
            code = DONE
            for prompt in prompts:
                code = await self.prompt(prompt)
                if code != DONE:
                    break
            return code

        return await self.during(one_after_the_other, updates)

    async def during(
        self, work: Callable[[], Awaitable[int]], updates: AsyncIterable[Update]
    ) -> int:
        """Show updates and answer what is asked while ``work`` runs; return what it returns."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.output.run)
            nursery.start_soon(self._watch, updates)
            nursery.start_soon(self.approver.run)
            code = await work()
            await self.output.drain()
            nursery.cancel_scope.cancel()
        return code

    def show(self, update: Update) -> None:
        """Take an update in and show it."""
        self.progress.update(update)
        self.view.update(update)

    async def interrupt_turn(self) -> bool:
        """Interrupt our running turn, without waiting for its end, or withdraw our message.

        A turn that somebody else has begun goes on. False when there was nothing to stop.
        """
        turn_id = self.progress.ours
        if turn_id is None:
            return await self._withdraw()
        if not await self.conversation.interrupt(turn_id):
            return False
        self.view.note("interrupting; Ctrl-C again to quit at once")
        return True

    async def _withdraw(self) -> bool:
        input_id = self.progress.waiting
        if input_id is None:
            return False
        try:
            await self.conversation.withdraw_input(input_id)
        except NotPending:  # a turn has just taken it
            return False
        return True

    async def prompt(self, prompt: str) -> int:
        """Run one prompt; return what a command that ran it alone would end with."""
        client_id = new_id()
        self.progress.expect(client_id)
        try:
            result = await self.conversation.run(
                prompt,
                settings=self.settings,
                client_id=client_id,
                output_schema=self.output_schema,
            )
        except NotPending:
            self.view.note("vaala: the message was withdrawn before a turn took it")
            return INTERRUPTED
        with trio.move_on_after(CATCH_UP_S):
            await self.progress.wait_ended(result.turn.id)
        code = self._code(result.turn)
        self.view.end(result.text, result.turn, code)
        self._explain(result, code)
        return code

    def _code(self, turn: TurnInfo) -> int:
        if self.approver.refused or self.progress.denied:
            return REFUSED
        return code_of(turn, network=self.progress.model_error == "network")

    def _explain(self, result: TurnResult, code: int) -> None:
        """Tell why it did not end well, or without an answer; a line for each refused call."""
        for refused in dict.fromkeys(self.approver.refused):
            self.view.note(f"vaala: rejected, since nobody could be asked: {refused}")
        for call in self.progress.denied:
            self.view.note(f"vaala: refused: {call.title or call.name}: {call.reason}")
        if self.approver.refused or self.progress.denied:
            return
        if code != DONE:
            reason = result.turn.message or result.turn.stop_reason or result.turn.state
            self.view.note(f"vaala: {reason}")
        elif not result.text.strip():
            self.view.note(f"vaala: {result.turn.message or 'The model said nothing.'}")

    async def _watch(self, updates: AsyncIterable[Update]) -> None:
        async for update in updates:
            await self.output.wait_room()
            self.show(update)
