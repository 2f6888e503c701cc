"""Reading what a session's log gives to a model."""

from __future__ import annotations

from vaala.agent.context import Context, ContextItem, context_of, governing
from vaala.agent.history import WHOLE, History, read_history
from vaala.dao.session_log import SessionLog
from vaala.models.base import Model
from vaala_protocol.items import ContextCut, ContextSummary, Item


class SessionHistory:
    """Folds the log as it is; its cost grows with what is in requests, not with the transcript."""

    def __init__(self, log: SessionLog) -> None:
        self._log = log

    async def read(self, model: Model, open_step: tuple[str, int]) -> History:
        """Return the history for a model, without the step of a turn that is open."""
        context = await self._context()
        pages = self._log.history(self._log.state.head.context_from)
        return await read_history(model, pages, open_step, context)

    async def kept(self) -> list[Item]:
        """Return the items that stand in requests for all that is left out."""
        head = governing(await self._changes())
        return [] if head is None else await self._kept_by(head)

    async def _context(self) -> Context:
        if not self._log.state.head.context_at:
            return WHOLE
        changes = await self._changes()
        head = governing(changes)
        return context_of(changes, [] if head is None else await self._kept_by(head))

    async def _changes(self) -> list[ContextItem]:
        """Return the items that say what is left out: they stand behind all that they cover."""
        return [
            item
            async for page in self._log.history(self._log.state.head.context_from)
            for item in page
            if isinstance(item, ContextSummary | ContextCut)
        ]

    async def _kept_by(self, head: ContextItem) -> list[Item]:
        kept: list[Item] = [head] if isinstance(head, ContextSummary) else []
        for place in head.keeps:
            page = await self._log.items(after=place - 1, before=place + 1, limit=1)
            kept += page.items
        return kept
