"""What an answer needs to be sent back as it came: signatures, each on the part it came with.

A signature stands on a part: a text, a thought or a function call. Ours are pieces of one text,
so what is kept with a message is how long each signed piece was and in which order the parts came.
Never are two parts joined of which one is signed, and no part gets a signature of another one
(ai.google.dev/gemini-api/docs/thought-signatures). Nothing here fails on data of any shape.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from msgspec import Struct

from vaala.models.gemini.limits import PARTS_MAX
from vaala_protocol.items import Private

API = "gemini"

PLACEHOLDER_SIGNATURE = "skip_thought_signature_validator"
"""For function calls of another model (ai.google.dev/gemini-api/docs/thought-signatures, FAQ, and
cloud.google.com/vertex-ai/generative-ai/docs/thought-signatures; of the two that are documented
this is the one that both servers take)."""

_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")
"""The form of bytes in JSON of protocol buffers; anything else is refused with the request."""


class Segment(Struct):
    """A part of an answer. ``size`` is the characters of a text or thought, or a call's index."""

    kind: Literal["text", "thought", "call"]
    size: int
    signature: str = ""


class Layout:
    """The parts of an answer in order, put together while they come."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._open: Segment | None = None

    def say(self, kind: Literal["text", "thought"], characters: int, signature: str = "") -> None:
        """Take a piece of text. A signed one is a part of its own."""
        if signature:
            self._segments.append(Segment(kind, characters, signature))
            self._open = None
        elif characters:
            if self._open is None or self._open.kind != kind:
                self._open = Segment(kind, 0)
                self._segments.append(self._open)
            self._open.size += characters

    def call(self, index: int) -> None:
        self._segments.append(Segment("call", index))
        self._open = None

    def data(self) -> dict[str, Any] | None:
        """Return what is to be kept with the message; None: its parts need no more than calls do.

        Texts and then calls is how they are sent anyway, so only a signed text or thought counts,
        or another order.
        """
        if len(self._segments) > PARTS_MAX:
            return None
        signed = any(segment.signature for segment in self._segments)
        kinds = [segment.kind for segment in self._segments if segment.kind != "thought"]
        if not signed and kinds == sorted(kinds, reverse=True):  # "text" before "call"
            return None
        return {"parts": [_packed(segment) for segment in self._segments]}


class Owner(Struct, frozen=True):
    """The model that a request is for; private data of any other is not for it."""

    provider: str
    model: str
    """"provider/model", as `vaala.models.base.Model.name` says it."""
    wants_signatures: bool = False

    def data_of(self, private: Private | None) -> dict[str, Any]:
        """Return what this model gave to be sent back; empty for what is of another one."""
        if private is None:
            return {}
        mine = (private.provider, private.api, private.model) == (self.provider, API, self.model)
        return private.data if mine else {}


def call_data(signature: str) -> dict[str, Any] | None:
    """Return what is to be kept with a call, None: nothing."""
    return {"thoughtSignature": signature} if signature else None


def signature_of(data: dict[str, Any]) -> str:
    """Return the signature, "" when there is none that a server could read."""
    value = data.get("thoughtSignature")
    return value if isinstance(value, str) and _is_base64(value) else ""


def _is_base64(value: str) -> bool:
    """Padding may be left out; where it stands it fills the last four characters."""
    if not _BASE64.fullmatch(value):
        return False
    bare = value.rstrip("=")
    # A single last character holds six bits: less than a byte.
    return len(bare) % 4 != 1 and (bare == value or len(value) % 4 == 0)


def segments_of(data: dict[str, Any]) -> list[Segment]:
    """Return the parts that were kept with a message, empty when there are none."""
    parts = data.get("parts")
    if not isinstance(parts, list):
        return []
    segments = [_unpacked(part) for part in parts]
    return [segment for segment in segments if segment is not None]


def _packed(segment: Segment) -> dict[str, Any]:
    signed = {"thoughtSignature": segment.signature} if segment.signature else {}
    return {segment.kind: segment.size} | signed


def _unpacked(part: Any) -> Segment | None:
    if not isinstance(part, dict):
        return None
    kinds: tuple[Literal["text", "thought", "call"], ...] = ("text", "thought", "call")
    for kind in kinds:
        size = part.get(kind)
        if isinstance(size, int) and size >= 0:
            return Segment(kind, size, signature_of(part))
    return None
