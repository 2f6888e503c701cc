"""`Notices`: lines for the person at one client. The oldest is dropped for one too many."""

from __future__ import annotations

from collections import deque

from vaala.server import limits
from vaala.server.clients import Level
from vaala.server.outbox import Outbox, Source
from vaala_protocol.methods.runtime import NoticeNotification
from vaala_protocol.rpc import write_notification


class Notices(Source):
    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: deque[NoticeNotification] = deque(maxlen=limits.NOTICES_MAX)

    def add(self, level: Level, text: str) -> None:
        self._waiting.append(NoticeNotification(level=level, text=text))
        self._outbox.ready(self)

    def next_message(self) -> bytes | None:
        return write_notification(self._waiting.popleft()) if self._waiting else None
