"""Our messages as the JSON of the Messages API.

Each message is encoded by itself. The API wants all results of an answer in the one message that
follows it: what is the user's is joined by `joined`, when a request is made, at the seam that the
bytes show. Spaces where `encode` writes none make it unmistakable: a seam is found neither in a
text, whose quotes are escaped, nor in the arguments of a call. A space shows a prompt as well: with
the first answer after the last one begins what the server takes for one answer, however many calls
and results it is made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from vaala.models.anthropic.limits import ARGUMENTS_DEPTH_MAX
from vaala.models.anthropic.replay import Block, Owner, replayed
from vaala.models.base import AssistantSaid, CallPart, CallResult, Message, UserSaid
from vaala.models.tool_names import wire_name
from vaala.models.wire import call_id, json_bytes, shown
from vaala.text import is_blank
from vaala_protocol.base import Malformed, decode
from vaala_protocol.content import Content

_USER = b'{"role":"user", "content":['
_ASSISTANT = b'{"role":"assistant", "content":['
_USER_END = b"]}"
_ASSISTANT_END = b"] }"
_SEAM = _USER_END + b"," + _USER
_PROMPT = b' {"type":'
_ANSWER = re.compile(
    re.escape(_ASSISTANT) + b"(.*?)" + re.escape(_ASSISTANT_END) + rb'(?=,\{"role":"|\Z)', re.DOTALL
)

_CACHE = b',"cache_control":{"type":"ephemeral"}'
_THOUGHTS = (b'{"type":"thinking",', b'{"type":"redacted_thinking",')


def encode_messages(messages: Iterable[Message], owner: Owner) -> bytes:
    """Return the messages as JSON objects joined by commas."""
    return b",".join(_message(message, owner) for message in messages)


def joined(history: bytes, messages: bytes) -> bytes:
    """Return the messages of a request; those of the user that are neighbours become one."""
    whole = b",".join((history, messages)) if history and messages else history or messages
    return whole.replace(_SEAM, b",")


def with_cache_marks(messages: bytes) -> list[bytes | memoryview]:
    """Mark where the server keeps what it has read: at the end, and before the last answer. Return
    the pieces.

    The second is where the request before this one ended. Without it a server that looks back 20
    blocks from the first would miss what it has after an answer of ten calls
    (platform.claude.com/docs/en/build-with-claude/prompt-caching).
    """
    if not messages.endswith(b"}" + _USER_END):
        return [messages]
    # Views: the one copy is made when the whole body is joined.
    view = memoryview(messages)
    end = len(messages) - len(b"}" + _USER_END)
    before = messages.rfind(b"}" + _USER_END + b"," + _ASSISTANT)
    if before < 0:
        return [view[:end], _CACHE, view[end:]]
    return [view[:before], _CACHE, view[before:end], _CACHE, view[end:]]


def lacks_thought(messages: bytes) -> bool:
    """Tell whether the answer that waits for results of its calls does not begin with a thought.

    Servers look at where it began, or at what came before the newest results: both must.
    """
    first, newest = messages.find(_ASSISTANT, _last_prompt(messages)), messages.rfind(_ASSISTANT)
    return first >= 0 and not all(
        messages.startswith(_THOUGHTS, answer + len(_ASSISTANT)) for answer in (first, newest)
    )


def without_thoughts(messages: bytes) -> bytes:
    """Return the messages of a request without any thoughts. Costs a reading of all answers."""
    return _ANSWER.sub(_thoughtless, messages) if has_thoughts(messages) else messages


def without_open_thoughts(messages: bytes) -> bytes:
    """Return the messages without the thoughts of the answer that waits for results of its calls.

    With thinking off these are refused; those of earlier answers are not. Costs a search where
    there are none.
    """
    start = _last_prompt(messages)
    waiting = messages[start:]
    return messages[:start] + without_thoughts(waiting) if has_thoughts(waiting) else messages


def has_thoughts(messages: bytes) -> bool:
    """Tell whether thoughts are sent back; costs a search."""
    return any(thought in messages for thought in _THOUGHTS)


def _last_prompt(messages: bytes) -> int:
    return max(0, messages.rfind(_PROMPT))


def _thoughtless(answer: re.Match[bytes]) -> bytes:
    if not has_thoughts(answer[1]):
        return answer[0]
    blocks = decode(b"[" + answer[1] + b"]")
    return _assistant([block for block in blocks if "thinking" not in block["type"]])


def _message(message: Message, owner: Owner) -> bytes:
    match message:
        case UserSaid():
            texts = _texts(message.content) or [_text("(nothing)")]
            return _USER + b" " + _json(texts) + _USER_END
        case AssistantSaid():
            return _assistant(_answer(message, owner))
        case CallResult():
            return _USER + _json([_result(message)]) + _USER_END


def _assistant(blocks: Sequence[Block]) -> bytes:
    return _ASSISTANT + _json(blocks) + _ASSISTANT_END


def _json(blocks: Sequence[Block]) -> bytes:
    return b",".join(map(json_bytes, blocks))


def _answer(said: AssistantSaid, owner: Owner) -> list[Block]:
    calls = [_call(call) for call in said.calls]
    blocks = replayed(said, calls, owner)
    if blocks is not None:
        return blocks
    texts = [] if is_blank(said.text) else [_text(said.text)]
    return texts + calls or [_text("(nothing)")]


def _call(call: CallPart) -> Block:
    return {
        "type": "tool_use",
        "id": call_id(call.id),
        "name": wire_name(call.name),
        "input": _input(call.arguments),
    }


def _input(arguments: str) -> dict[str, Any]:
    """Return arguments as the object that the API wants; what is none is wrapped."""
    if not arguments.strip():
        return {}
    try:
        value = decode(arguments.encode())
    except (Malformed, UnicodeEncodeError):
        value = None
    if isinstance(value, dict) and _is_shallow(value):
        return value
    return {"malformed_arguments": arguments}


def _is_shallow(value: dict[str, Any]) -> bool:
    """Tell whether a value has few enough objects and arrays inside each other."""
    level: list[Any] = [value]
    for _ in range(ARGUMENTS_DEPTH_MAX):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return True
    return False


def _result(result: CallResult) -> Block:
    block: Block = {
        "type": "tool_result",
        "tool_use_id": call_id(result.id),
        "content": _texts(result.content) or [_text("(no output)")],
    }
    return block | {"is_error": True} if result.is_error else block


def _texts(content: Iterable[Content]) -> list[Block]:
    """Return blocks of text; a blank one is refused and left out."""
    return [_text(text) for text in map(shown, content) if not is_blank(text)]


def _text(text: str) -> Block:
    return {"type": "text", "text": text}
