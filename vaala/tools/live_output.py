"""Output shown while it comes: coalesced, clean, and skipped where it comes too fast to be read."""

from __future__ import annotations

from collections.abc import Callable

import trio

from vaala.tools import limits
from vaala.tools.text import size_text
from vaala_executors.text import TextCleaner


class LiveOutput:
    """May drop: of what comes within one interval, only the last bytes are shown.

    ``publish`` gets the number of bytes of output before the text, and the text; it must not
    block. A carriage return in it means that the line begins again.
    """

    def __init__(self, publish: Callable[[int, str], None]) -> None:
        self._publish = publish
        self._pending = bytearray()
        self._total = 0
        self._skipped = 0
        self._cleaner = TextCleaner()
        self._more = trio.Event()

    def add(self, data: bytes) -> None:
        self._total += len(data)
        self._pending += data[-limits.LIVE_BYTES_MAX :]
        over = len(self._pending) - limits.LIVE_BYTES_MAX
        self._skipped += max(0, over) + max(0, len(data) - limits.LIVE_BYTES_MAX)
        if over > 0:
            del self._pending[:over]
        self._more.set()

    async def run(self) -> None:
        """Publish until cancelled, at most once an interval."""
        while True:
            await self._more.wait()
            self.flush()
            await trio.sleep(limits.LIVE_INTERVAL_S)

    def flush(self) -> None:
        """Publish what waits."""
        data, self._pending = bytes(self._pending), bytearray()
        skipped, self._skipped = self._skipped, 0
        self._more = trio.Event()
        if skipped:
            self._cleaner = TextCleaner()
        text = self._cleaner.feed(data)
        if skipped:
            text = f"\n({size_text(skipped, 'byte')} skipped)\n{text}"
        if text:
            self._publish(self._total - len(data), text)
