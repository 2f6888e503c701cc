"""`AnswerText`: from messages that grow to one exact text without repeats or gaps."""

from __future__ import annotations

from collections.abc import Callable


class AnswerText:
    """Feeds the text of messages to ``put``, each character once, messages a blank line apart.

    Blank text at the start of a message waits for what follows it: a message that stays blank
    shows nothing.
    """

    def __init__(self, put: Callable[[str], None]) -> None:
        self._put = put
        self._seen: dict[str, int] = {}
        """How many characters of each message have come."""
        self._held: dict[str, str] = {}
        self._current: str | None = None
        self._tail = ""

    @property
    def at_line_start(self) -> bool:
        return self._tail == "" or self._tail.endswith("\n")

    def more(self, message_id: str, index: int, text: str) -> None:
        """Take text of a message that stands at ``index`` in it; what came before is skipped."""
        seen = self._seen.get(message_id, 0)
        new = text[max(0, seen - index) :]
        if not new:
            return
        self._seen[message_id] = index + len(text)
        new = self._held.pop(message_id, "") + new
        if self._current != message_id and not new.strip():
            self._held[message_id] = new
            return
        if self._current != message_id:
            self._separate()
            self._current = message_id
        self._write(new)

    def skip(self, message_id: str, length: int) -> None:
        """Count a message as shown: it is from before this run."""
        self._seen[message_id] = length

    def void(self, message_id: str) -> None:
        """The message is taken back; what was shown of it stays, and the next one follows it."""
        self._seen.pop(message_id, None)
        self._held.pop(message_id, None)
        if self._current == message_id:
            self._current = None

    def broken(self) -> None:
        """Something else was written on the same screen, up to the end of its line."""
        if self._tail:
            self._tail = "\n"

    def end(self) -> None:
        """End the answer: the last line gets its newline, the next answer is separate."""
        if not self.at_line_start:
            self._write("\n")
        self._seen.clear()
        self._held.clear()

    def _separate(self) -> None:
        if not self._tail:
            return
        if not self._tail.endswith("\n"):
            self._write("\n\n")
        elif not self._tail.endswith("\n\n"):
            self._write("\n")

    def _write(self, text: str) -> None:
        self._tail = (self._tail + text)[-2:]
        self._put(text)
