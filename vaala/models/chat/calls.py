"""Tool calls put together from the deltas of a stream.

Servers disagree on what a delta says. What is relied on, in this order:

- ``index`` where it is there; else ``id``; else the place: a delta belongs to the newest call.
- Another id *and* a name at the same index is another call; so is, where there is no id, a name
  after complete arguments.
- A name that comes again is the same name; a name in pieces is joined; which of the two a piece
  is, the names of the tools decide. A name is complete when arguments begin, or at the end.
- Ids are only compared, never joined and never sent on: ours are made by the session.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from vaala.models.base import CallDelta, CallEnd, CallStart, ModelEvent
from vaala.models.limits import CALLS_PER_ANSWER_MAX
from vaala.models.text_channel import TextChannel
from vaala.models.wire import json_bytes
from vaala_protocol.base import Malformed, decode


class TooManyCalls(ValueError):
    """The answer has more calls than any turn could run."""


class _Call:
    __slots__ = ("arguments", "channel", "id", "name", "number")

    def __init__(self) -> None:
        self.number = -1
        """In the answer; given when the call starts, so that starts count up."""
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []
        self.channel = TextChannel()

    @property
    def says_something(self) -> bool:
        return bool(self.name or self.arguments)

    @property
    def has_complete_arguments(self) -> bool:
        if not self.arguments:
            return False
        try:
            return isinstance(decode("".join(self.arguments).encode()), dict)
        except Malformed:
            return False


class CallAssembler:
    """Takes the entries of ``tool_calls`` and gives call events.

    ``tool_names`` are the names of tools by what they are called on the wire.
    """

    def __init__(self, tool_names: Mapping[str, str]) -> None:
        self._tool_names = tool_names
        self._calls: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._started = 0

    def __len__(self) -> int:
        return sum(call.says_something for call in self._calls)

    def feed(self, entries: Any) -> Iterator[ModelEvent]:
        """Take one ``tool_calls`` list, or anything that stands in its place."""
        if not isinstance(entries, list):
            return
        for place, entry in enumerate(entries):
            if isinstance(entry, dict):
                yield from self._take(entry, place)

    def feed_legacy(self, function: Any) -> Iterator[ModelEvent]:
        """Take a ``function_call``, the older form that allows one call."""
        if isinstance(function, dict):
            yield from self._take({"index": 0, "function": function}, 0)

    def end(self) -> Iterator[ModelEvent]:
        """Close all calls; the answer is complete."""
        calls = [call for call in self._calls if call.says_something]
        for call in calls:
            if call.number < 0:
                yield self._start(call)
        for call in sorted(calls, key=lambda call: call.number):
            yield CallEnd(call.number, "".join(call.arguments) + call.channel.end())

    def _take(self, entry: dict[str, Any], place: int) -> Iterator[ModelEvent]:
        function = entry.get("function")
        if not isinstance(function, dict):
            function = entry
        name = _text(function.get("name")).encode("utf-8", "replace").decode()
        id_ = _text(entry.get("id"))
        arguments = _arguments(function.get("arguments"))
        if not (name or id_ or arguments):
            return
        call = self._call_of(_index(entry.get("index")), id_, name, place)
        if name and call.number < 0:
            call.name = self._joined(call.name, name)
        piece = call.channel.feed(arguments)
        if not piece:
            return
        call.arguments.append(piece)
        if call.number >= 0:
            yield CallDelta(call.number, piece)
        elif call.name:
            yield from self._start_up_to(call)
            yield CallDelta(call.number, "".join(call.arguments))

    def _start_up_to(self, call: _Call) -> Iterator[ModelEvent]:
        """Start a call, and before it those that came earlier and whose names are whole."""
        for earlier in self._calls:
            if earlier is call:
                break
            if earlier.number < 0 and earlier.name in self._tool_names:
                yield self._start(earlier)
        yield self._start(call)

    def _start(self, call: _Call) -> CallStart:
        call.number = self._started
        self._started += 1
        return CallStart(call.number, self._tool_names.get(call.name, call.name))

    def _call_of(self, index: int | None, id_: str, name: str, place: int) -> _Call:
        known = self._known(index, id_, place, name)
        if known is None or self._begins_another(known, id_, name):
            known = self._new()
        known.id = known.id or id_
        if index is not None:
            self._by_index[index] = known
        return known

    def _known(self, index: int | None, id_: str, place: int, name: str) -> _Call | None:
        if index is not None:
            return self._by_index.get(index)
        if id_:
            for call in reversed(self._calls):
                if call.id == id_:
                    return call
        elif place > 0 and name:
            # Two entries of one list are two calls.
            return None
        return self._calls[-1] if self._calls else None

    @staticmethod
    def _begins_another(call: _Call, id_: str, name: str) -> bool:
        if not name:
            return False
        if id_ and call.id:
            return id_ != call.id
        return not id_ and call.has_complete_arguments

    def _new(self) -> _Call:
        if len(self._calls) >= CALLS_PER_ANSWER_MAX:
            raise TooManyCalls(f"the answer has more than {CALLS_PER_ANSWER_MAX} tool calls")
        call = _Call()
        self._calls.append(call)
        return call

    def _joined(self, known: str, piece: str) -> str:
        if not known or piece == known:
            return piece
        if known + piece in self._tool_names:
            return known + piece
        if piece in self._tool_names or piece.startswith(known):
            return piece
        return known + piece


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _index(value: Any) -> int | None:
    if isinstance(value, float) and isfinite(value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _arguments(value: Any) -> str:
    """Return a piece of arguments; some servers send the object itself."""
    if isinstance(value, dict):
        return json_bytes(value).decode()
    return _text(value)
