"""`RuntimeWatch`: all conversations at once, watched by one client."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import trio

from vaala.hub import RuntimeHub
from vaala.server.api.frames import runtime_event_message, runtime_resync_message
from vaala.server.outbox import Outbox, Source
from vaala.stream import Published, QueueBudget
from vaala_protocol.methods.runtime import RuntimeSnapshot

if TYPE_CHECKING:
    from vaala.hub_stream import RuntimeSubscription

log = logging.getLogger(__name__)


class RuntimeWatch(Source):
    """One task runs `run`; the outbox pulls messages, from `begin` on."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._scope = trio.CancelScope()
        self._subscription: RuntimeSubscription | None = None
        self._begun = False
        self._faulty = False

    async def run(
        self, hub: RuntimeHub, budget: QueueBudget, *, task_status: trio.TaskStatus[RuntimeSnapshot]
    ) -> None:
        """Watch until `stop`. Started with the snapshot for the client; raises `Unreadable`."""
        watching = hub.subscribe(budget=budget, on_ready=self._has_news)
        try:
            with self._scope:
                async with watching as self._subscription:
                    snapshot = self._subscription.next_nowait()
                    assert isinstance(snapshot, RuntimeSnapshot)
                    task_status.started(snapshot)
                    await trio.sleep_forever()
        finally:
            self.stop()

    def begin(self) -> None:
        """Let the outbox pull what comes after the answer."""
        self._begun = True
        self._has_news()

    def stop(self) -> None:
        """The client does not want any more."""
        self._begun = False
        self._outbox.forget(self)
        self._scope.cancel()

    def next_message(self) -> bytes | None:
        """See `Source`. After a fault in what is watched the client gets a snapshot; another one
        is raised and ends the connection, since nothing else would tell the client."""
        if not self._begun or self._subscription is None:
            return None
        try:
            return self._next(self._subscription)
        except Exception:
            if self._faulty:
                raise
            log.exception("the runtime cannot be shown; its watcher gets a snapshot")
        self._faulty = True
        self._subscription.lose()
        return self._next(self._subscription)

    def _next(self, subscription: RuntimeSubscription) -> bytes | None:
        match subscription.next_published_nowait():
            case RuntimeSnapshot() as snapshot:
                return runtime_resync_message(snapshot)
            case Published() as published:
                return runtime_event_message(published)
            case None:
                return None

    def _has_news(self) -> None:
        if self._begun:
            self._outbox.ready(self)
