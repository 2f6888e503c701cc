"""The blocks of an answer, put together from their events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from vaala.models.anthropic.replay import Layout
from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    ModelEvent,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
)
from vaala.models.limits import CALLS_PER_ANSWER_MAX
from vaala.models.text_channel import TextChannel
from vaala.models.wire import read_json
from vaala_protocol.base import encode

_BROKEN_OFF = "{"
"""Behind arguments of a call that its message did not complete: with it no text is an object, so
the call is refused and not run."""


class TooManyCalls(ValueError):
    """The answer has more calls than any turn could run."""


class _Block:
    def __init__(self, start: dict[str, Any], number: int = -1) -> None:
        self.start = start
        self.kind: str = start["type"]
        self.number = number
        """Of a call, in the answer."""
        self.pieces: list[str] = []
        self.signature = ""
        self.channel = TextChannel()

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Blocks:
    """Takes ``content_block_*`` and gives events; ``tool_names`` are the names of tools by what
    they are called on the wire.

    Blocks of a kind that is not known, such as those of tools that the server runs, give no events
    and are kept to be sent back.
    """

    def __init__(self, tool_names: Mapping[str, str]) -> None:
        self._tool_names = tool_names
        self._blocks: list[_Block] = []
        self._by_index: dict[Any, _Block] = {}
        self._calls: list[_Block] = []
        self._broken_off: set[int] = set()
        self.said = False
        """There was text."""

    @property
    def calls(self) -> int:
        return len(self._calls)

    @property
    def any(self) -> bool:
        return bool(self._blocks)

    def begin_again(self) -> Iterator[ModelEvent]:
        """Another message begins in the middle of this one, as a gateway makes it that asks a
        second server when a first one fails. What was said stays; no call of the first is run."""
        yield from self._flush()
        self._broken_off.update(range(self.calls))
        self._by_index.clear()

    def start(self, event: dict[str, Any]) -> Iterator[ModelEvent]:
        """Take ``content_block_start``. Raises `TooManyCalls`."""
        start = event.get("content_block")
        if not isinstance(start, dict) or not isinstance(start.get("type"), str):
            return
        if start["type"] == "tool_use":
            yield from self._start_call(event.get("index"), start)
            return
        block = self._add(event.get("index"), start)
        if block.kind in ("text", "thinking"):
            yield from self._say(block, start.get(block.kind))
            block.signature = _text(start.get("signature"))

    def delta(self, event: dict[str, Any]) -> Iterator[ModelEvent]:
        """Take ``content_block_delta``."""
        delta, index = event.get("delta"), event.get("index")
        if not isinstance(delta, dict):
            return
        block = self._by_index.get(_key(index))
        match delta.get("type"):
            case "text_delta":
                yield from self._say(block or self._add(index, {"type": "text"}), delta.get("text"))
            case "thinking_delta":
                block = block or self._add(index, {"type": "thinking"})
                yield from self._say(block, delta.get("thinking"))
            case "signature_delta" if block is not None:
                block.signature += _text(delta.get("signature"))
            case "input_json_delta" if block is not None:
                yield from self._argue(block, _text(delta.get("partial_json")))
            case "compaction_delta" if block is not None:
                block.start = block.start | {"content": delta.get("content")}
            case _:
                pass

    def end(self) -> Iterator[ModelEvent]:
        """Close all calls, and give what is to be sent back with the answer."""
        yield from self._flush()
        for call in self._calls:
            arguments = call.text or _given(call.start.get("input"))
            cut = _BROKEN_OFF if call.number in self._broken_off else ""
            yield CallEnd(call.number, arguments + cut)
        data = None if self._broken_off else self._layout().data()
        if data is not None:
            # Where there is a call it has an item of its own; thoughts without text have none.
            yield ProviderBlob(0 if self._calls else "message", data)

    def _start_call(self, index: Any, start: dict[str, Any]) -> Iterator[ModelEvent]:
        if self.calls >= CALLS_PER_ANSWER_MAX:
            raise TooManyCalls(f"the answer has more than {CALLS_PER_ANSWER_MAX} tool calls")
        block = self._add(index, start, self.calls)
        self._calls.append(block)
        name = _text(start.get("name")).encode("utf-8", "replace").decode()
        yield CallStart(block.number, self._tool_names.get(name, name))

    def _add(self, index: Any, start: dict[str, Any], number: int = -1) -> _Block:
        block = _Block(start, number)
        self._blocks.append(block)
        self._by_index[_key(index)] = block
        return block

    def _say(self, block: _Block, piece: Any) -> Iterator[ModelEvent]:
        whole = block.channel.feed(_text(piece))
        if not whole:
            return
        block.pieces.append(whole)
        if block.kind == "thinking":
            yield ReasoningDelta(whole)
        elif block.kind == "text":
            self.said = True
            yield TextDelta(whole)

    def _argue(self, block: _Block, piece: str) -> Iterator[ModelEvent]:
        whole = block.channel.feed(piece)
        if not whole:
            return
        block.pieces.append(whole)
        if block.number >= 0:
            yield CallDelta(block.number, whole)

    def _flush(self) -> Iterator[ModelEvent]:
        """Give halves of characters that nothing followed."""
        for block in self._by_index.values():
            if (rest := block.channel.end()) and block.kind in ("text", "thinking"):
                yield from self._say(block, rest)
            elif rest:
                yield from self._argue(block, rest)

    def _layout(self) -> Layout:
        layout = Layout()
        for block in self._blocks:
            if block.kind == "text":
                layout.say(len(block.text))
            elif block.kind == "thinking":
                layout.think(block.text, block.signature)
            elif block.number >= 0:
                layout.call(block.number)
            else:
                layout.opaque(_opaque(block))
        return layout


def _opaque(block: _Block) -> dict[str, Any]:
    argued = read_json(block.text.encode()) if block.pieces else None
    return block.start | {"input": argued} if isinstance(argued, dict) else block.start


def _given(value: Any) -> str:
    """Return arguments that came whole with the begin of a call, as some servers send them."""
    return encode(value).decode() if isinstance(value, dict) and value else ""


def _key(index: Any) -> Any:
    return index if isinstance(index, int | str) else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
