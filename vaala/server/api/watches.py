"""`Watches`: what one client watches."""

from __future__ import annotations

import trio

from vaala.runtime import Runtime
from vaala.server import limits
from vaala.server.api.runtime_watch import RuntimeWatch
from vaala.server.api.watch import ConversationWatch
from vaala.server.outbox import Outbox
from vaala.stream import QueueBudget
from vaala_protocol.errors import Overloaded
from vaala_protocol.methods.conversation import (
    ConversationSubscribeParams,
    ConversationSubscribeResult,
)
from vaala_protocol.methods.runtime import RuntimeSnapshot


class Watches:
    """Each watch is a task of the connection; all of them share one budget for what waits."""

    def __init__(self, runtime: Runtime, nursery: trio.Nursery, outbox: Outbox) -> None:
        self._runtime = runtime
        self._nursery = nursery
        self._outbox = outbox
        self._budget = QueueBudget()
        self._conversations: dict[str, ConversationWatch] = {}
        self._whole: RuntimeWatch | None = None

    def __len__(self) -> int:
        return len(self._conversations) + (self._whole is not None)

    async def watch(
        self, params: ConversationSubscribeParams
    ) -> tuple[ConversationSubscribeResult, ConversationWatch]:
        """Watch a conversation, in place of an earlier watch of it; return the answer for the
        client, and the watch, which is to begin when that was answered.

        Raises `Overloaded` for one too many, `NotFound`, `Unreadable`, `Stopping`.
        """
        conversation_id = params.conversation_id
        self.leave(conversation_id)
        if len(self._conversations) >= limits.WATCHED_CONVERSATIONS_MAX:
            raise Overloaded(
                f"this client watches {len(self._conversations)} conversations already: "
                "let it unsubscribe from one of them"
            )
        watch = ConversationWatch(self._runtime, conversation_id, self._outbox, self._budget)
        self._conversations[conversation_id] = watch
        return await self._nursery.start(watch.run, params.after, self._over), watch

    def leave(self, conversation_id: str) -> None:
        """Stop watching a conversation; nothing when it is not watched."""
        if (watch := self._conversations.pop(conversation_id, None)) is not None:
            watch.stop()

    async def watch_runtime(self) -> tuple[RuntimeSnapshot, RuntimeWatch]:
        """Watch all conversations, in place of an earlier such watch; see `watch`."""
        self.leave_runtime()
        watch = self._whole = RuntimeWatch(self._outbox)
        return await self._nursery.start(watch.run, self._runtime.hub, self._budget), watch

    def leave_runtime(self) -> None:
        """Stop watching all conversations; nothing when they are not watched."""
        if self._whole is not None:
            self._whole.stop()
            self._whole = None

    def _over(self, watch: ConversationWatch) -> None:
        if self._conversations.get(watch.conversation_id) is watch:
            del self._conversations[watch.conversation_id]
