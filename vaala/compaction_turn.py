"""`CompactionTurn`: the turn of a person who wants the history to be short now."""

from __future__ import annotations

from vaala.endings import Ending
from vaala.turn import Turn
from vaala_protocol.errors import Refused


class CompactionTurn(Turn):
    """Takes no message and makes no step: a summary replaces all that was said, and it ends.

    It is interrupted, told and counted like every turn. When there is no summary, nothing has
    changed, and messages that wait go on.
    """

    stops_queue = False

    async def _work(self) -> Ending | None:
        try:
            _, asking = await self.prepared()
        except Refused as refused:
            return Ending("failed", "failed", str(refused))
        return await asking.compact()
