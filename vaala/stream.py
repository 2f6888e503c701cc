"""The event stream of a conversation: a snapshot, then every change, in order, numbered."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from vaala import limits
from vaala.event_size import event_characters
from vaala.fanout import Fanout
from vaala.ring import Published
from vaala.subscription import QueueBudget, Reading
from vaala.subscription import Subscription as AnySubscription
from vaala_protocol.events import CommandOutput, Event, Frame, ItemDelta, WaitsChanged
from vaala_protocol.state import Snapshot

__all__ = ["EventStream", "Published", "QueueBudget", "Reading", "Subscription", "Update"]

Update: TypeAlias = Snapshot | Frame
"""A snapshot replaces all that was known; a frame changes it."""
Subscription: TypeAlias = AnySubscription[Snapshot, Frame]


class EventStream(Fanout[Snapshot, Frame, Event]):
    """Consecutive deltas of one item are merged while they wait: a frame covers their numbers. Of
    consecutive lists of what a session waits for the last one tells all."""

    def frame(self, event: Event) -> Frame:
        return Frame(epoch=self.epoch, first=self.seq, seq=self.seq, event=event)

    def characters(self, frame: Frame) -> int:
        return event_characters(frame.event)

    def merge(self, old: Frame, new: Frame) -> Frame | None:
        match old.event, new.event:
            case WaitsChanged(session_id=before), WaitsChanged(session_id=now) if before == now:
                return Frame(epoch=old.epoch, first=old.first, seq=new.seq, event=new.event)
            case ItemDelta() as first, ItemDelta() as second:
                same = first.item_id == second.item_id and first.field == second.field
            case CommandOutput() as first, CommandOutput() as second:
                same = first.command_id == second.command_id
            case _:
                return None
        if not same or len(first.text) > limits.MERGED_DELTA_CHARACTERS_MAX:
            return None
        event = msgspec.structs.replace(first, text=first.text + second.text)
        return Frame(epoch=old.epoch, first=old.first, seq=new.seq, event=event)
