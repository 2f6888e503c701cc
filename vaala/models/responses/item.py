"""One item of an answer while it grows."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from vaala.models.text_channel import TextChannel
from vaala.models.wire import json_bytes

Kind: TypeAlias = Literal["message", "reasoning", "function_call", "other"]

_KINDS: dict[str, Kind] = {
    "message": "message",
    "reasoning": "reasoning",
    "function_call": "function_call",
}


class GrowingText:
    """A text that comes in pieces, and perhaps once more whole."""

    __slots__ = ("_channel", "_pieces")

    def __init__(self) -> None:
        self._channel = TextChannel()
        self._pieces: list[str] = []

    def more(self, piece: Any) -> str:
        """Take a piece and return what can be shown of it."""
        shown = self._channel.feed(piece) if isinstance(piece, str) else ""
        if shown:
            self._pieces.append(shown)
        return shown

    def whole(self, text: Any) -> str:
        """Take the text whole and return what had not come in pieces.

        What was shown cannot be taken back: a text that begins otherwise gives nothing.
        """
        if not isinstance(text, str):
            return ""
        shown = self.text
        if len(text) <= len(shown) or not text.startswith(shown):
            return ""
        self._channel = TextChannel()
        return self.more(text[len(shown) :])

    def end(self) -> str:
        """Return what is left at the end of the answer."""
        rest = self._channel.end()
        if rest:
            self._pieces.append(rest)
        return rest

    @property
    def has_begun(self) -> bool:
        return bool(self._pieces)

    @property
    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""


class OutputItem:
    """An item by its place in the output. What it has of text is kept by part."""

    __slots__ = ("call", "done", "end", "final", "kind", "parts", "shows", "start", "value")

    def __init__(self) -> None:
        self.kind: Kind = "other"
        self.value: dict[str, Any] = {}
        """As the server gave it last."""
        self.done = False
        self.parts: dict[tuple[str, int], GrowingText] = {}
        self.shows = ""
        """Which of its texts a piece of reasoning shows, its summary or itself: the first."""
        self.start = -1
        self.end = 0
        """Where the text of a message stands in the text of the answer; -1: it has none yet."""
        self.call = -1
        """The index of a call that has begun."""
        self.final: str | None = None
        """The arguments of a call as the server gave them whole."""

    def take(self, value: dict[str, Any]) -> None:
        """Take the item as the server gives it, when it begins or when it is done."""
        kind = value.get("type")
        self.kind = _KINDS.get(kind, "other") if isinstance(kind, str) else "other"
        self.value = value

    def part(self, kind: str, index: Any) -> GrowingText:
        number = index if isinstance(index, int) and not isinstance(index, bool) else 0
        return self.parts.setdefault((kind, number), GrowingText())

    @property
    def name(self) -> str:
        name = self.value.get("name")
        return name.encode("utf-8", "replace").decode() if isinstance(name, str) else ""

    @property
    def arguments(self) -> GrowingText:
        return self.part("arguments", 0)

    @property
    def whole_arguments(self) -> str:
        """The arguments of a call: what came whole counts more than what came in pieces."""
        return self.arguments.text if self.final is None else self.final


def arguments_text(value: Any) -> str | None:
    """Return arguments that came whole as text; some servers send the object itself."""
    if isinstance(value, dict):
        return json_bytes(value).decode()
    if not isinstance(value, str):
        return None
    channel = TextChannel()
    return channel.feed(value) + channel.end()
