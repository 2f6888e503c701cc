"""The items of an answer put together from the events of a stream.

Servers disagree on what an event says. What is relied on, in this order: ``output_index``; else
``item_id`` (llama.cpp sends no index); else the newest item. Ids are a last resort only, because
GitHub Copilot gives an item another id in each event. Text and arguments may come in pieces, whole,
or both; what comes in both is given once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    ModelEvent,
    ReasoningDelta,
    TextDelta,
)
from vaala.models.limits import CALLS_PER_ANSWER_MAX
from vaala.models.responses.item import OutputItem, arguments_text
from vaala.models.responses.limits import OUTPUT_ITEMS_MAX

_PARAGRAPH = "\n\n"

_ITEM_DONE = "response.output_item.done"
_ITEMS = ("response.output_item.added", _ITEM_DONE)
_PIECES = {
    "response.output_text.delta": ("text", "content_index"),
    "response.refusal.delta": ("refusal", "content_index"),
    "response.reasoning_text.delta": ("reasoning", "content_index"),
    "response.reasoning_summary_text.delta": ("summary", "summary_index"),
}
_WHOLE = {
    "response.output_text.done": ("text", "content_index", "text"),
    "response.refusal.done": ("refusal", "content_index", "refusal"),
    "response.reasoning_text.done": ("reasoning", "content_index", "text"),
    "response.reasoning_summary_text.done": ("summary", "summary_index", "text"),
}
_PARTS = {
    "output_text": ("text", "text"),
    "text": ("text", "text"),
    "refusal": ("refusal", "refusal"),
    "reasoning_text": ("reasoning", "text"),
    "summary_text": ("summary", "text"),
}
"""Which text a part of an item's content or summary is, and the field that holds it."""


class TooMuch(ValueError):
    """The answer has more items or calls than any turn could use."""


class Output:
    """Takes events and items; gives text, reasoning and calls. Raises `TooMuch`."""

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = names or {}
        """Of tools, by what they are called on the wire."""
        self._items: dict[int, OutputItem] = {}
        self._by_id: dict[str, OutputItem] = {}
        self._newest: OutputItem | None = None
        self._reasoned = False
        self.calls: list[OutputItem] = []
        self.chars = 0
        """Of the text given so far."""
        self.refused = False

    @property
    def items(self) -> list[OutputItem]:
        """In the order of the output."""
        return [self._items[index] for index in sorted(self._items)]

    def event(self, kind: str, event: dict[str, Any]) -> Iterable[ModelEvent]:
        """Take one event; kinds that mean nothing here give nothing."""
        if kind in _PIECES:
            part, index = _PIECES[kind]
            return self._piece(self._of(event), part, event.get(index), event.get("delta"))
        if kind in _WHOLE:
            part, index, field = _WHOLE[kind]
            return self._whole(self._of(event), part, event.get(index), event.get(field))
        if kind == "response.function_call_arguments.delta":
            return self._arguments(self._of(event), event.get("delta"))
        if kind == "response.function_call_arguments.done":
            item = self._of(event)
            if not item.name and isinstance(event.get("name"), str):
                item.value = item.value | {"name": event["name"]}
            return self._final_arguments(item, event.get("arguments"))
        value = event.get("item")
        if isinstance(value, dict) and kind in _ITEMS:
            return self._item(event, value, done=kind == _ITEM_DONE)
        return ()

    def whole_output(self, output: Any) -> Iterator[ModelEvent]:
        """Take ``output`` of the whole response: it gives what no event gave."""
        values: list[Any] = output if isinstance(output, list) else []
        for index, value in enumerate(values):
            known = self._items.get(index)
            if isinstance(value, dict) and (known is None or not known.done):
                yield from self._item({"output_index": index}, value, done=True)

    def end(self) -> Iterator[ModelEvent]:
        """Close everything; the answer is complete."""
        for item in self.items:
            for (part, _), text in item.parts.items():
                if part != "arguments" and (rest := text.end()):
                    yield from self._show(item, part, rest)
            if item.kind == "function_call" and item.call < 0 and item.whole_arguments:
                yield from self._start(item)
        for item in self.calls:
            rest = item.arguments.end()
            if rest:
                yield CallDelta(item.call, rest)
            yield CallEnd(item.call, item.whole_arguments)

    def _of(self, event: dict[str, Any]) -> OutputItem:
        """Return the item that an event is about; a new one where it is about none."""
        index, id_ = event.get("output_index"), event.get("item_id")
        if isinstance(index, int) and not isinstance(index, bool):
            return self._items.get(index) or self._new(index)
        if isinstance(id_, str) and id_ in self._by_id:
            return self._by_id[id_]
        return self._newest or self._new(0)

    def _new(self, index: int) -> OutputItem:
        if len(self._items) >= OUTPUT_ITEMS_MAX:
            raise TooMuch(f"the answer has more than {OUTPUT_ITEMS_MAX} items")
        item = self._items[index] = self._newest = OutputItem()
        return item

    def _item(
        self, event: dict[str, Any], value: dict[str, Any], *, done: bool
    ) -> Iterator[ModelEvent]:
        item = self._placed(event, value, done=done)
        item.take(value)
        item.done = item.done or done
        if item.kind == "function_call":
            if item.name and item.call < 0:
                yield from self._start(item)
            if done:
                yield from self._final_arguments(item, value.get("arguments"))
        elif done and item.kind in ("message", "reasoning"):
            # Its own text last: a summary that was shown in pieces goes on being what is shown.
            for parts in ("summary", "content"):
                yield from self._content(item, value.get(parts))

    def _placed(self, event: dict[str, Any], value: dict[str, Any], *, done: bool) -> OutputItem:
        id_ = value.get("id")
        known = self._by_id.get(id_) if isinstance(id_, str) else None
        if isinstance(event.get("output_index"), int):
            item = self._of(event)
        elif known is not None:
            item = known
        elif done and self._newest is not None and not self._newest.done:
            item = self._newest
        else:
            item = self._new(max(self._items, default=-1) + 1)
        if isinstance(id_, str) and len(self._by_id) < 2 * OUTPUT_ITEMS_MAX:
            self._by_id[id_] = item
        return item

    def _content(self, item: OutputItem, parts: Any) -> Iterator[ModelEvent]:
        listed: list[Any] = parts if isinstance(parts, list) else []
        for index, part in enumerate(listed):
            kind = part.get("type") if isinstance(part, dict) else None
            if isinstance(kind, str) and kind in _PARTS:
                name, field = _PARTS[kind]
                yield from self._whole(item, name, index, part.get(field))

    # What each delta goes through gives lists: a generator for each step would cost more than
    # all else that is done for it.

    def _piece(self, item: OutputItem, part: str, index: Any, piece: Any) -> list[ModelEvent]:
        growing = item.part(part, index)
        begins = not growing.has_begun
        text = growing.more(piece)
        return self._show(item, part, text, begins=begins) if text else []

    def _whole(self, item: OutputItem, part: str, index: Any, text: Any) -> list[ModelEvent]:
        growing = item.part(part, index)
        begins = not growing.has_begun
        rest = growing.whole(text)
        return self._show(item, part, rest, begins=begins) if rest else []

    def _show(
        self, item: OutputItem, part: str, text: str, *, begins: bool = False
    ) -> list[ModelEvent]:
        """Give text; messages are set apart from each other, and so are parts of reasoning."""
        if part in ("text", "refusal"):
            self.refused = self.refused or part == "refusal"
            apart: list[ModelEvent] = []
            if item.start < 0:
                if self.chars:
                    apart.append(TextDelta(_PARAGRAPH))
                    self.chars += len(_PARAGRAPH)
                item.start = self.chars
            self.chars += len(text)
            item.end = self.chars
            return [*apart, TextDelta(text)]
        item.shows = item.shows or part
        if item.shows != part:
            return []
        if begins and self._reasoned:
            text = _PARAGRAPH + text
        self._reasoned = True
        return [ReasoningDelta(text)]

    def _start(self, item: OutputItem) -> Iterator[ModelEvent]:
        if len(self.calls) >= CALLS_PER_ANSWER_MAX:
            raise TooMuch(f"the answer has more than {CALLS_PER_ANSWER_MAX} tool calls")
        item.call = len(self.calls)
        self.calls.append(item)
        yield CallStart(item.call, self._names.get(item.name, item.name))
        if early := item.arguments.text:
            yield CallDelta(item.call, early)

    def _arguments(self, item: OutputItem, piece: Any) -> list[ModelEvent]:
        if isinstance(piece, dict):
            piece = arguments_text(piece)
        text = item.arguments.more(piece)
        return [CallDelta(item.call, text)] if text and item.call >= 0 else []

    def _final_arguments(self, item: OutputItem, value: Any) -> list[ModelEvent]:
        text = arguments_text(value)
        # Servers that leave the whole text out send it empty.
        if not text:
            return []
        item.final = text
        rest = item.arguments.whole(text)
        return [CallDelta(item.call, rest)] if rest and item.call >= 0 else []
