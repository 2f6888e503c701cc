"""Function calls put together from the parts of a stream.

A call mostly comes whole, with or without an id, which is not looked at: ours are made by the
session. Vertex AI can also stream one: a part with the name and ``willContinue``, parts without a
name that carry ``partialArgs``, and one without ``willContinue`` that ends it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from vaala.models.base import CallDelta, CallEnd, CallStart, ModelEvent, ProviderBlob
from vaala.models.gemini.limits import PATH_KEYS_MAX
from vaala.models.gemini.names import ToolNames
from vaala.models.gemini.replay import Layout, call_data
from vaala.models.limits import CALLS_PER_ANSWER_MAX
from vaala.models.wire import json_bytes
from vaala.text import scrub

_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
"""One step of a path of RFC 9535 as it is used for arguments: a name or an index."""
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


class TooManyCalls(ValueError):
    """The answer has more calls than any turn could run."""


class BadPath(ValueError):
    """A streamed argument says no place where it could go."""


class _Streamed:
    """A call whose arguments come in pieces."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.signature = ""
        self._values: dict[str, Any] = {}
        self._broken: list[Any] = []

    def take(self, piece: Any) -> None:
        """Take one entry of ``partialArgs``."""
        try:
            _put(self._values, piece)
        except BadPath:
            self._broken.append(piece)

    @property
    def arguments(self) -> str:
        """The object, or, where a piece of it had no place, something that is none: such a call
        must not run on half of its arguments."""
        return json_bytes(self._broken or self._values).decode()


class CallAssembler:
    """Takes ``functionCall`` parts and gives call events, and the signatures to be kept."""

    def __init__(self, names: ToolNames, layout: Layout) -> None:
        self._names = names
        self._layout = layout
        self._count = 0
        self._open: _Streamed | None = None

    def __len__(self) -> int:
        return self._count

    def feed(self, call: dict[str, Any], signature: str) -> Iterator[ModelEvent]:
        """Take one part; raises `TooManyCalls`."""
        name = call.get("name")
        goes_on = call.get("willContinue") is True
        pieces = call.get("partialArgs")
        if isinstance(name, str) and name:
            yield from self.end()
            index = self._begin()
            yield CallStart(index, self._names.ours(scrub(name)))
            if not goes_on and not pieces:
                yield from _whole(index, _arguments(call.get("args")), signature)
                return
            self._open = _Streamed(index)
        if self._open is None:
            return
        self._open.signature = self._open.signature or signature
        for piece in pieces if isinstance(pieces, list) else ():
            self._open.take(piece)
        if not goes_on:
            yield from self.end()

    def end(self) -> Iterator[ModelEvent]:
        """Close the call that is open, if any."""
        call, self._open = self._open, None
        if call is not None:
            yield from _whole(call.index, call.arguments, call.signature)

    def _begin(self) -> int:
        if self._count >= CALLS_PER_ANSWER_MAX:
            raise TooManyCalls(f"the answer has more than {CALLS_PER_ANSWER_MAX} tool calls")
        index, self._count = self._count, self._count + 1
        self._layout.call(index)
        return index


def _whole(index: int, arguments: str, signature: str) -> Iterator[ModelEvent]:
    yield CallDelta(index, arguments)
    yield CallEnd(index, arguments)
    data = call_data(signature)
    if data is not None:
        yield ProviderBlob(index, data)


def _arguments(value: Any) -> str:
    """Return the arguments as text; without any there is no field, and some gateways send text."""
    if value is None:
        return "{}"
    return scrub(value) if isinstance(value, str) else json_bytes(value).decode()


def _put(values: dict[str, Any], piece: Any) -> None:
    """Set what ``piece`` says; a text is added to the one that is there. Raises `BadPath`."""
    if not isinstance(piece, dict):
        raise BadPath
    kind = next((name for name in _VALUES if name in piece), None)
    *way, last = _steps(piece.get("jsonPath"))
    place: Any = values
    for step, following in zip(way, [*way, last][1:], strict=True):
        place = _entered(place, step, list if isinstance(following, int) else dict)
    before = _at(place, last)
    if kind is None:
        # It may end what came before; alone it would set nothing.
        if before is None:
            raise BadPath
        return
    value = None if kind == "nullValue" else piece[kind]
    if isinstance(before, str) and isinstance(value, str):
        value = before + value
    _set(place, last, value)


def _steps(path: Any) -> list[str | int]:
    if not isinstance(path, str) or not path.startswith("$"):
        raise BadPath
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(steps) >= PATH_KEYS_MAX:
            raise BadPath
        index = found[2]
        steps.append(int(index) if index else found[1] or found[3] or found[4] or "")
        at = found.end()
    if not steps:
        raise BadPath
    return steps


def _entered(place: Any, step: str | int, kind: type[Any]) -> Any:
    """Return what is at ``step``, made when it is not there."""
    inner = _at(place, step)
    if inner is None:
        inner = kind()
        _set(place, step, inner)
    if not isinstance(inner, kind):
        raise BadPath
    return inner


def _at(place: Any, step: str | int) -> Any:
    if isinstance(place, dict) and isinstance(step, str):
        return place.get(step)
    if isinstance(place, list) and isinstance(step, int):
        return place[step] if step < len(place) else None
    raise BadPath


def _set(place: Any, step: str | int, value: Any) -> None:
    """Set a value where `_at` looked; a list only grows by its next element."""
    if isinstance(step, str) or step < len(place):
        place[step] = value
    elif step == len(place):
        place.append(value)
    else:
        raise BadPath
