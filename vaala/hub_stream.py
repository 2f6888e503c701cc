"""The stream of the runtime: what goes on in all conversations, for sidebars and inboxes.

Imported when somebody first watches.
"""

from __future__ import annotations

from typing import TypeAlias

from vaala.fanout import Fanout
from vaala.subscription import Subscription
from vaala_protocol.items import Approval
from vaala_protocol.methods.runtime import (
    DecisionPending,
    RowChanged,
    RuntimeEvent,
    RuntimeFrame,
    RuntimeSnapshot,
)

RuntimeSubscription: TypeAlias = Subscription[RuntimeSnapshot, RuntimeFrame]


class HubStream(Fanout[RuntimeSnapshot, RuntimeFrame, RuntimeEvent]):
    """Frames are never merged: each has one number, and rows are throttled where they are made."""

    def frame(self, event: RuntimeEvent) -> RuntimeFrame:
        return RuntimeFrame(epoch=self.epoch, seq=self.seq, event=event)

    def characters(self, frame: RuntimeFrame) -> int:
        match frame.event:
            case RowChanged(row=row):
                return len(row.info.title) + len(row.snippet) + sum(map(len, row.info.tags))
            case DecisionPending(pending=pending):
                decision = pending.decision
                text = decision.reason if isinstance(decision, Approval) else decision.text
                return len(pending.title) + len(pending.conversation_title) + len(text)
            case _:
                return 0

    def merge(self, old: RuntimeFrame, new: RuntimeFrame) -> RuntimeFrame | None:
        return None
