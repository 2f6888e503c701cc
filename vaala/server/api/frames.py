"""What watches send, as messages. Nothing private is in them."""

from __future__ import annotations

from vaala.server.api.fitting import fitting_snapshot
from vaala.stream import Published
from vaala_protocol.errors import Overloaded
from vaala_protocol.events import Frame
from vaala_protocol.limits import ANSWER_BYTES_MAX
from vaala_protocol.methods.conversation import (
    ClosedNotification,
    EventNotification,
    ResyncNotification,
)
from vaala_protocol.methods.runtime import (
    RuntimeEventNotification,
    RuntimeFrame,
    RuntimeResyncNotification,
    RuntimeSnapshot,
)
from vaala_protocol.public import public_frame, public_snapshot
from vaala_protocol.rpc import write_notification
from vaala_protocol.state import Snapshot


def event_message(conversation_id: str, published: Published[Frame]) -> bytes:
    """Return the message of a frame: encoded once, for all who watch the conversation."""
    if published.wire is None:
        frame = public_frame(published.frame)
        published.wire = write_notification(
            EventNotification(conversation_id=conversation_id, frame=frame)
        )
    return published.wire


def resync_message(conversation_id: str, snapshot: Snapshot) -> bytes:
    """Raises `Overloaded` for a snapshot that no message holds."""
    message = write_notification(
        ResyncNotification(conversation_id=conversation_id, snapshot=shown_snapshot(snapshot))
    )
    if len(message) > ANSWER_BYTES_MAX:
        raise Overloaded(f"a snapshot of {len(message):,} bytes is more than a message holds")
    return message


def shown_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return a snapshot as clients get it."""
    return fitting_snapshot(public_snapshot(snapshot))


def closed_message(conversation_id: str, reason: str) -> bytes:
    return write_notification(ClosedNotification(conversation_id=conversation_id, reason=reason))


def runtime_event_message(published: Published[RuntimeFrame]) -> bytes:
    """Return the message of a frame: encoded once, for all who watch the runtime."""
    if published.wire is None:
        published.wire = write_notification(RuntimeEventNotification(frame=published.frame))
    return published.wire


def runtime_resync_message(snapshot: RuntimeSnapshot) -> bytes:
    return write_notification(RuntimeResyncNotification(snapshot=snapshot))
