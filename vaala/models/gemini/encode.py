"""Our messages as the ``contents`` of a request.

Contents alternate between user and model, and all results of an answer stand in one of them: the
server refuses everything else. A message is encoded by itself, so neighbours of one role are two
contents at first, and become one when a request is put together. That is done on bytes: what begins
and ends a content has white space that nothing inside of it can have, since that is compact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from vaala.models.base import AssistantSaid, CallPart, CallResult, Message, UserSaid
from vaala.models.gemini.limits import ARGUMENTS_DEPTH_MAX
from vaala.models.gemini.names import legal_name
from vaala.models.gemini.replay import (
    PLACEHOLDER_SIGNATURE,
    Owner,
    Segment,
    segments_of,
    signature_of,
)
from vaala.models.wire import call_id, json_bytes, shown
from vaala.text import is_blank
from vaala_protocol.base import Malformed, decode
from vaala_protocol.content import Content

_USER = (b'{"role": "user","parts":[', b"] }")
_MODEL = (b'{"role": "model","parts":[', b"]  }")


def encode_messages(messages: Iterable[Message], owner: Owner) -> bytes:
    """Return the messages as JSON objects joined by commas."""
    return b",".join(_content(message, owner) for message in messages)


def joined_contents(pieces: Iterable[bytes]) -> bytes:
    """Return encoded messages as contents that a server takes, joined by commas, never empty.

    Neighbours of one role become one. The first content and the last are a user's: a line is
    added where they are not.
    """
    contents = b",".join(piece for piece in pieces if piece)
    for begin, end in (_USER, _MODEL):
        # "Please ensure that multiturn requests alternate between user and model"
        # (github.com/NousResearch/hermes-agent/issues/55125)
        contents = contents.replace(end + b"," + begin, b",")
    if not contents.startswith(_USER[0]):
        lead = _content_of(_USER, [_text("(The conversation goes on.)")])
        contents = lead + b"," + contents if contents else lead
    if not contents.endswith(_USER[1]):
        # "... ends with a user role or a function response"
        # (github.com/songquanpeng/one-api/issues/836)
        contents += b"," + _content_of(_USER, [_text("(Go on.)")])
    return contents


def _content(message: Message, owner: Owner) -> bytes:
    match message:
        case UserSaid():
            texts = _texts(message.content) or ["(an empty message)"]
            return _content_of(_USER, [_text(text) for text in texts])
        case AssistantSaid():
            return _content_of(_MODEL, _model_parts(message, owner))
        case CallResult():
            return _content_of(_USER, [_result(message)])


def _content_of(role: tuple[bytes, bytes], parts: Sequence[dict[str, Any]]) -> bytes:
    return role[0] + b",".join(map(json_bytes, parts)) + role[1]


def _model_parts(message: AssistantSaid, owner: Owner) -> list[dict[str, Any]]:
    calls = _calls(message.calls, owner)
    segments = segments_of(owner.data_of(message.private))
    thoughts = "".join(part.text for part in message.reasoning)
    if _fit(segments, message.text, len(calls)):
        return _laid_out(segments, message.text, thoughts, calls)
    parts = [] if is_blank(message.text) else [_text(message.text)]
    return parts + calls or [_text("(nothing)")]


def _fit(segments: Sequence[Segment], text: str, calls: int) -> bool:
    """Tell whether the parts that were kept are those of this message, nothing cut off or added."""
    characters = sum(segment.size for segment in segments if segment.kind == "text")
    indices = [segment.size for segment in segments if segment.kind == "call"]
    return bool(segments) and characters == len(text) and indices == list(range(calls))


def _laid_out(
    segments: Sequence[Segment], text: str, thoughts: str, calls: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the parts as they came. A thought without a signature would say nothing."""
    sizes = [segment.size for segment in segments if segment.kind == "thought"]
    whole = sum(sizes) == len(thoughts)
    parts: list[dict[str, Any]] = []
    at = {"text": 0, "thought": 0}
    for segment in segments:
        if segment.kind == "call":
            parts.append(calls[segment.size])
            continue
        begin = at[segment.kind]
        at[segment.kind] = begin + segment.size
        source = text if segment.kind == "text" else thoughts
        part = _text(source[begin : at[segment.kind]])
        if segment.kind == "thought":
            if segment.signature and whole:
                parts.append(_signed(part | {"thought": True}, segment.signature))
        elif segment.signature or not is_blank(part["text"]):
            parts.append(_signed(part, segment.signature))
    return parts or [_text("(nothing)")]


def _calls(calls: Sequence[CallPart], owner: Owner) -> list[dict[str, Any]]:
    """Return the calls as parts. Their ids are ours, also where the model gave one, so that each
    message can be encoded by itself: servers compare the two of a call with each other alone."""
    parts: list[dict[str, Any]] = []
    for call in calls:
        signature = signature_of(owner.data_of(call.private))
        # Of the calls of one answer only the first must have one.
        if not signature and not parts and owner.wants_signatures:
            signature = PLACEHOLDER_SIGNATURE
        function = {
            "id": call_id(call.id),
            "name": legal_name(call.name),
            "args": _arguments(call.arguments),
        }
        parts.append(_signed({"functionCall": function}, signature))
    return parts


def _signed(part: dict[str, Any], signature: str) -> dict[str, Any]:
    return part | {"thoughtSignature": signature} if signature else part


def _arguments(text: str) -> dict[str, Any]:
    """Return the arguments as an object, which they must be; what is none is wrapped in one."""
    if not text.strip():
        return {}
    try:
        value = decode(text.encode())
    except (Malformed, UnicodeEncodeError):
        value = None
    if isinstance(value, dict) and _is_shallow(value):
        return value
    return {"malformed_arguments": text}


def _is_shallow(value: Any) -> bool:
    level = [value]
    for _ in range(ARGUMENTS_DEPTH_MAX):
        level = [
            item
            for one in level
            if isinstance(one, dict | list)
            for item in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return True
    return False


def _result(result: CallResult) -> dict[str, Any]:
    """The keys of the response are those that the API reads ("output", "error")."""
    text = "\n\n".join(_texts(result.content)) or "(no output)"
    return {
        "functionResponse": {
            "id": call_id(result.id),
            "name": legal_name(result.name),
            "response": {"error" if result.is_error else "output": text},
        }
    }


def _text(text: str) -> dict[str, Any]:
    return {"text": text}


def _texts(content: Iterable[Content]) -> list[str]:
    """Return what the blocks say, blank ones left out."""
    return [text for text in map(shown, content) if not is_blank(text)]
