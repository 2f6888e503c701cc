"""`AnswerText`: from messages that grow to one exact text without repeats or gaps."""

from __future__ import annotations

from collections.abc import Callable


class AnswerText:
    """Feeds the text of messages to ``put``, each character once, messages a blank line apart.

    Blank text at the start of a message waits for what follows it: a message that stays blank
    shows nothing. When a message is taken back and made again, what the new one repeats is not
    shown twice; one that differs begins on a line of its own, after ``again`` has told so.
    """

    def __init__(
        self, put: Callable[[str], None], again: Callable[[], None] = lambda: None
    ) -> None:
        self._put = put
        self._again = again
        self._shown = ""
        """The text of the current message."""
        self._replaced = ""
        """What was shown of a message that was taken back, until the new one is told apart."""
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
        if self._current == message_id:
            self._show(new)
        elif not new.strip() or (new != self._replaced and self._replaced.startswith(new)):
            self._held[message_id] = new
        else:
            self._begin(message_id, new)

    def _begin(self, message_id: str, text: str) -> None:
        """Show the first text of a message, without what is there already."""
        for other in [other for other, held in self._held.items() if held.strip()]:
            # It ended within what it repeats, and this message follows it.
            self._begin(other, self._held.pop(other))
        repeated, self._replaced = self._replaced, ""
        self._current, self._shown = message_id, repeated
        if repeated and text.startswith(repeated):
            self._show(text[len(repeated) :])
            return
        self._shown = ""
        if repeated:
            self._again()
        self._separate()
        self._show(text)

    def _show(self, text: str) -> None:
        self._shown += text
        self._write(text)

    def skip(self, message_id: str, length: int) -> None:
        """Count a message as shown: it is from before this run."""
        self._seen[message_id] = length

    def void(self, message_id: str) -> None:
        """The message is taken back, to be made again; what was shown of it stays."""
        self._seen.pop(message_id, None)
        self._held.pop(message_id, None)
        if self._current == message_id:
            self._current, self._replaced, self._shown = None, self._shown, ""

    def broken(self) -> None:
        """Something else was written on the same screen, up to the end of its line."""
        if self._tail:
            self._tail = "\n"

    def end(self) -> None:
        """End the answer: the last line gets its newline, the next answer is separate."""
        if (held := next((one for one in self._held if self._held[one].strip()), None)) is not None:
            self._begin(held, self._held.pop(held))
        self._replaced = self._shown = ""
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
