"""`ConversationWatch`: one conversation, watched by one client, for as long as the client wants.

It outlives the openings of the conversation: after a crash it subscribes again by itself and the
client gets a snapshot of the new opening. Only a conversation that is gone, or cannot be opened
again and again, ends it; the client is told.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import trio

from vaala.runtime import Runtime
from vaala.server import limits
from vaala.server.api.frames import (
    closed_message,
    event_message,
    resync_message,
    shown_snapshot,
)
from vaala.server.outbox import Outbox, Source
from vaala.stream import Published, QueueBudget, Reading, Subscription
from vaala_protocol.errors import NotFound, Refused
from vaala_protocol.methods.conversation import ConversationSubscribeResult, Position
from vaala_protocol.state import Snapshot

log = logging.getLogger(__name__)


class ConversationWatch(Source):
    """One task runs `run`; the outbox pulls messages, from `begin` on."""

    def __init__(
        self, runtime: Runtime, conversation_id: str, outbox: Outbox, budget: QueueBudget
    ) -> None:
        self._runtime = runtime
        self.conversation_id = conversation_id
        self._outbox = outbox
        self._reading = Reading(budget=budget, on_ready=self._has_news)
        self._scope = trio.CancelScope()
        self._subscription: Subscription | None = None
        self._ended = trio.Event()
        self._begun = False
        self._last_word: str | None = None
        self._fault = False

    async def run(
        self,
        after: Position | None,
        over: Callable[[ConversationWatch], None],
        *,
        task_status: trio.TaskStatus[ConversationSubscribeResult],
    ) -> None:
        """Watch until `stop` or the end of the conversation; then call ``over``.

        Started with the answer for the client. What prevents that is raised.
        """
        try:
            with self._scope:
                reason = await self._first_opening(after, task_status)
                while reason is None:
                    reason = await self._next_openings()
                self._last_word = reason
                self._has_news()
                await trio.sleep_forever()
        finally:
            self._outbox.forget(self)
            over(self)

    def begin(self) -> None:
        """Let the outbox pull what comes after the answer."""
        self._begun = True
        self._has_news()

    def stop(self) -> None:
        """The client does not want any more."""
        self._outbox.forget(self)
        self._begun = False
        self._scope.cancel()

    def next_message(self) -> bytes | None:
        """See `Source`. A fault in what is watched ends this watch, not the connection."""
        try:
            return self._next()
        except Exception:
            log.exception("conversation %s cannot be shown", self.conversation_id)
            self._fault = True
            self._ended.set()
            return None

    def _next(self) -> bytes | None:
        if not self._begun:
            return None
        update = self._subscription.next_published_nowait() if self._subscription else None
        match update:
            case Snapshot():
                return resync_message(self.conversation_id, update)
            case Published():
                return event_message(self.conversation_id, update)
            case None:
                return self._at_rest()

    def _at_rest(self) -> bytes | None:
        if self._last_word is not None:
            self._begun = False
            self._scope.cancel()
            return closed_message(self.conversation_id, self._last_word)
        if self._subscription is not None and self._subscription.ended:
            self._ended.set()
        return None

    def _has_news(self) -> None:
        if self._begun:
            self._outbox.ready(self)

    async def _first_opening(
        self,
        after: Position | None,
        task_status: trio.TaskStatus[ConversationSubscribeResult],
    ) -> str | None:
        conversation = await self._runtime.conversation(self.conversation_id)
        async with conversation.subscribe(after=after, reading=self._reading) as subscription:
            answer = ConversationSubscribeResult()
            if not subscription.resumed:
                snapshot = subscription.next_nowait()
                assert isinstance(snapshot, Snapshot)
                answer = ConversationSubscribeResult(snapshot=shown_snapshot(snapshot))
            self._subscription = subscription
            task_status.started(answer)
            return await self._follow(subscription)

    async def _next_openings(self) -> str | None:
        """Follow the next opening; return why there is none, None when it has ended, too."""
        delay = limits.REOPEN_FIRST_S
        why = "it crashes again and again; the log of the server says why"
        for _ in range(limits.REOPEN_TIMES_MAX):
            try:
                conversation = await self._runtime.conversation(self.conversation_id)
                async with conversation.subscribe(reading=self._reading) as subscription:
                    self._subscription = subscription
                    self._has_news()
                    began = trio.current_time()
                    reason = await self._follow(subscription)
                if reason is not None or trio.current_time() - began > limits.REOPEN_MAX_S:
                    return reason
            except NotFound:
                return "deleted"
            except Refused as refused:
                log.info("conversation %s does not open: %s", self.conversation_id, refused)
                why = f"it does not open: {refused}"
            await trio.sleep(delay)
            delay = min(2 * delay, limits.REOPEN_MAX_S)
        return why

    async def _follow(self, subscription: Subscription) -> str | None:
        """Wait until all of an opening was sent; return why there cannot be another one."""
        self._ended = trio.Event()
        try:
            await self._ended.wait()
        finally:
            self._subscription = None
        if self._fault:
            return "it cannot be shown; the log of the server says why"
        return "deleted" if subscription.reason == "deleted" else None
