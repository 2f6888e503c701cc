"""What an answer needs to be sent back as it came: thoughts with their signatures, opaque blocks,
and the order of all its blocks.

Thoughts must come back unmodified and in their order
(platform.claude.com/docs/en/build-with-claude/extended-thinking, "preserving thinking blocks"). Our
items hold the texts; what is kept beside them is how long each block was, and a check sum that
tells whether the thoughts are still those. Where anything does not fit, all of it is left out: an
answer without its thoughts is legal, one with others is not. Nothing here fails on data of any
shape.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from vaala.models.anthropic.limits import REPLAY_BYTES_MAX
from vaala.models.anthropic.thinking import version
from vaala.models.base import AssistantSaid
from vaala.text import is_blank
from vaala_protocol.base import encode
from vaala_protocol.items import Private

API = "anthropic"

Block: TypeAlias = dict[str, Any]


class Owner(Struct, frozen=True):
    """The model that a request is for; private data of any other is not for it."""

    provider: str
    model: str
    """"provider/model", as `vaala.models.base.Model.name` says it."""

    def data_of(self, private: Private | None) -> dict[str, Any]:
        """Return what this model gave to be sent back; empty for what is of another one."""
        if private is None:
            return {}
        mine = (private.provider, private.api, private.model) == (self.provider, API, self.model)
        return private.data if mine else {}

    @property
    def signs(self) -> bool:
        """Tell whether its thoughts are worth nothing without a signature."""
        return version(self.model) is not None


class Layout:
    """The blocks of an answer in order, put together while they come."""

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._crc = 0
        self._matters = False

    def say(self, characters: int) -> None:
        """Take a block of text."""
        self._blocks.append({"text": characters})

    def think(self, text: str, signature: str) -> None:
        """Take a thought, in the order of the texts that the reasoning is made of."""
        self._crc = zlib.crc32(text.encode("utf-8", "replace"), self._crc)
        self._blocks.append({"thinking": len(text), "signature": signature})
        self._matters = True

    def call(self, number: int) -> None:
        self._blocks.append({"call": number})

    def opaque(self, block: Block) -> None:
        """Take a block that is kept and sent back as it is."""
        self._blocks.append({"block": block})
        self._matters = True

    def data(self) -> dict[str, Any] | None:
        """Return what is to be kept; None: nothing, or too much."""
        if not self._matters:
            return None
        data = {"blocks": self._blocks, "crc": self._crc}
        return data if len(encode(data)) <= REPLAY_BYTES_MAX else None


def replayed(said: AssistantSaid, calls: Sequence[Block], owner: Owner) -> list[Block] | None:
    """Return the blocks of an answer as they came, None when that is not known.

    ``calls`` are the blocks of its calls.
    """
    private = (said.private, *(call.private for call in said.calls))
    data = next((data for data in map(owner.data_of, private) if data), None)
    entries = None if data is None else data.get("blocks")
    if data is None or not isinstance(entries, list):
        return None
    thoughts = "".join(part.text for part in said.reasoning)
    if data.get("crc") != zlib.crc32(thoughts.encode("utf-8", "replace")):
        return None
    sizes = _Sizes(entries)
    # A text that was blank has become none.
    if sizes.thinking != len(thoughts) or (said.text and sizes.text != len(said.text)):
        return None
    if sorted(sizes.calls) != list(range(len(calls))):
        return None
    blocks = list(_laid_out(entries, said.text, thoughts, calls, owner))
    # No answer may end with a thought.
    is_legal = blocks and blocks[-1]["type"] not in ("thinking", "redacted_thinking")
    return blocks if is_legal else None


class _Sizes:
    """What a layout says it is made of; negative where it is none."""

    def __init__(self, entries: Sequence[Any]) -> None:
        self.text = self.thinking = 0
        self.calls: list[int] = []
        for entry in entries:
            match entry:
                case {"text": int(size)} if size >= 0:
                    self.text += size
                case {"thinking": int(size), "signature": str()} if size >= 0:
                    self.thinking += size
                case {"call": int(number)}:
                    self.calls.append(number)
                case {"block": {"type": str()}}:
                    pass
                case _:
                    self.calls.append(-1)


def _laid_out(
    entries: Sequence[Any], text: str, thoughts: str, calls: Sequence[Block], owner: Owner
) -> Iterator[Block]:
    said = thought = 0
    for entry in entries:
        match entry:
            case {"text": int(size)}:
                piece = text[said : said + size]
                said += size
                if not is_blank(piece):
                    yield {"type": "text", "text": piece}
            case {"thinking": int(size), "signature": str(signature)}:
                piece = thoughts[thought : thought + size]
                thought += size
                if signature or not owner.signs:
                    yield {"type": "thinking", "thinking": piece, "signature": signature}
            case {"call": int(number)}:
                yield calls[number]
            case _:
                # The kind first: thoughts are found by how they begin.
                yield {"type": entry["block"]["type"]} | entry["block"]
