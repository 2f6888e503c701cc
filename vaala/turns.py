"""`Turns`: the turns of a session, one after another, and what an interrupt holds between them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from vaala import inputs, requests
from vaala.changes import Change, turn_change
from vaala.compaction_turn import CompactionTurn
from vaala.observer import TurnWork
from vaala.turn import Turn, new_turn
from vaala_protocol.errors import BadRequest, Busy, NotDurable
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings
from vaala_protocol.state import InputInfo, TurnInfo

if TYPE_CHECKING:
    from vaala.session import Session


class Turns:
    """Its session's loop calls it; `interrupt` comes at any moment, also while that waits."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.running: Turn | None = None
        """From just before its first append until its clean-up has ended."""
        self._hold: set[str] = set()
        """Inputs that waited at an interrupt: held when its turn ends, or the next would begin."""

    def interrupt(self, turn_id: str | None, sent: Collection[str]) -> bool:
        """See `Session.interrupt`."""
        turn, pending = self.running, self._session.state.pending
        if turn is not None and (turn_id in (None, turn.id) or turn.answers.intersection(sent)):
            self._hold = {waiting.id for waiting in pending}
            return turn.interrupt("user")
        if turn is None and turn_id is None:
            # Between two turns: what is about to start the next one waits, too.
            sent = [waiting.client_id for waiting in pending]
        self._hold |= {waiting.id for waiting in pending if waiting.client_id in sent}
        return False

    def release(self) -> None:
        """A person goes on: what the last interrupt held may run."""
        self._hold.clear()

    async def begin(self, pending: Iterable[InputInfo]) -> None:
        """Release what is held and start a turn with what comes first, in one append.

        Raises `NotDurable`; then no turn runs.
        """
        session = self._session
        taken, changes = inputs.starting(session.state, pending)
        if not taken:
            return await session.write(changes, keep=False)
        definitions = session.around.definitions
        info = new_turn(taken[-1].settings, self._settings(), definitions.instance)
        took, items = inputs.consumed(
            session.state, taken, session.next_at, turn_id=info.id, step=1
        )
        turn = Turn(session, definitions, info, items)
        turn.asked = taken[-1].settings or Settings()
        turn.takes(taken)
        is_first = session.state.head.turn is None
        await self._start(turn, [*changes, turn_change(session.id, info), *took])
        if is_first:
            session.around.first_turn(session, items)

    async def compact(self) -> TurnInfo:
        """See `requests.Compact`. Raises `Busy`, `BadRequest` when there is nothing to compact."""
        session = self._session
        head = session.state.head
        if self.running is not None:
            raise Busy("a turn is running: wait until it has ended, or interrupt it first")
        if head.turn is None or head.last_at == head.context_at:
            raise BadRequest(
                "there is nothing to compact: nothing was said since the beginning, or "
                "since it was compacted last"
            )
        definitions = session.around.definitions
        definitions.agent(session.info.agent)
        info = new_turn(None, self._settings(), definitions.instance)
        turn = CompactionTurn(session, definitions, info, ())
        await self._start(turn, [turn_change(session.id, info)])
        return info

    def _settings(self) -> Settings:
        session = self._session
        agent = session.around.definitions.agents.get(session.info.agent)
        own = session.state.head.settings
        return own if agent is None else own.over(agent.settings)

    async def _start(self, turn: Turn, changes: Sequence[Change]) -> None:
        session = self._session
        # Before it is written down: an interrupt that comes meanwhile is its own.
        self.running = turn
        try:
            await session.write(changes, keep=False)
        except BaseException:
            self.running = None
            raise
        session.around.session_changed()
        session.spawn(self._run, turn)

    async def _run(self, turn: Turn) -> None:
        session = self._session
        work = TurnWork(
            session.around.log.id, session.id, turn.id, turn.agent.name, session.info.spawned_by
        )
        try:
            with turn.definitions.observer.turn(work) as seen:
                try:
                    await turn.run()
                finally:
                    ended = turn.result.turn
                    # One that still runs has crashed: the session goes with it.
                    state = "failed" if ended.state == "running" else ended.state
                    seen.ended(state, ended.stop_reason or "")
        finally:
            session.report(requests.TurnGone(turn.id))

    async def begin_step(self, begin: requests.BeginStep) -> tuple[Item, ...]:
        """See `requests.BeginStep`. Nothing is taken for a turn that is ending."""
        session, turn = self._session, self.running
        if turn is not None and turn.closing:
            return ()
        taken = inputs.for_step(session.state.pending)
        changes, items = inputs.consumed(
            session.state, taken, session.next_at, turn_id=begin.turn_id, step=begin.number
        )
        if changes := [*session.due_checkpoint(), *changes]:
            await session.write(changes, keep=False)
        if turn is not None:
            turn.takes(taken)
        return items

    async def finish(self, finish: requests.Finish) -> Sequence[Item]:
        """See `requests.Finish`."""
        session, turn = self._session, self.running
        assert turn is not None
        pending = session.state.pending
        if finish.unless_steered and not turn.closing and inputs.steers(pending):
            await session.write(finish.changes, keep=True)
            return await self.begin_step(requests.BeginStep(finish.turn.id, finish.number))
        hold = self._hold
        if finish.turn.state == "failed" and turn.stops_queue:
            hold = {waiting.id for waiting in pending}
        ended = turn_change(session.id, finish.turn, finish.before)
        turn.closed = True
        held = inputs.held(session.state, hold)
        await session.write([*finish.changes, ended, *held], keep=True)
        return ()

    async def gone(self) -> None:
        """The turn's task has ended, clean-up included: go on with the next one."""
        session, turn = self._session, self.running
        assert turn is not None
        self.running = None
        session.used_at = trio.current_time()
        session.history = turn.history
        with suppress(NotDurable):
            await session.write(session.due_checkpoint(), keep=False)
        session.outcomes.ended(turn.answers, turn.result)
        await self.go_on()
        await session.rested()
        session.around.session_changed()

    async def go_on(self) -> None:
        """Write what could not be written, and start the next turn when one is due."""
        session = self._session
        try:
            await session.catch_up()
            await self._hold_back()
            pending = session.state.pending
            if self.running is None and not session.stopping and inputs.for_turn(pending):
                await self.begin([one for one in pending if one.state == "waiting"])
        except NotDurable:
            session.nudge_later()

    async def _hold_back(self) -> None:
        """Hold what an interrupt came for after the last turn was closed."""
        if self.running is None:
            while held := inputs.held(self._session.state, self._hold):
                await self._session.write(held, keep=False)
            self._hold.clear()
