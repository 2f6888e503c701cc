"""`CutRequests`: notices a local server that cuts requests to its window without a word.

Ollama leaves out what does not fit, by default all but some thousand tokens, and answers what is
left: the task or the rules may be gone. What it says to have read gives it away. Its API of chat
completions has no way to ask for more (docs.ollama.com/context-length, docs.ollama.com/openai).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from vaala.changes import item_change, now_ms
from vaala.models.base import Model
from vaala_protocol.ids import new_id
from vaala_protocol.items import Notice
from vaala_protocol.settings import Usage

if TYPE_CHECKING:
    from vaala.turn import Turn

SIZE_BYTES_MIN = 16 * 1024
"""A smaller request fits everywhere."""
BYTES_PER_TOKEN_MAX = 8
"""No text that people or programs write has more; code and prose have three to five. A server that
reads fewer tokens has not read all."""
CODE = "request_cut"
_IMAGES = (b";base64,", b'"type":"base64"')
"""What stands before an image in a request: it has far fewer tokens than bytes."""


class CutRequests:
    """Of one session. What was told is in its log, so that it is told once and no more."""

    def __init__(self) -> None:
        self._told = False

    async def look(self, turn: Turn, model: Model, size_bytes: int, usage: Usage) -> None:
        """Write a notice when a call that was answered shows that its request was cut.

        ``size_bytes`` is that of the request. Durable on return.
        """
        read = usage.input + usage.cache_read + usage.cache_write
        if self._told or not is_cut(model, size_bytes, read) or _has_image(turn, model):
            return
        self._told = True
        if await _was_told(turn):
            return
        now = now_ms()
        notice = Notice(
            id=new_id(), at=turn.session.next_at(), turn_id=turn.id, step=turn.step_number,
            created_at=now, completed_at=now, level="warning", code=CODE,
            text=text(model.name, read, size_bytes // BYTES_PER_TOKEN_MAX),
        )  # fmt: skip
        turn.items[notice.id] = notice
        await turn.record([item_change(notice)])


def is_cut(model: Model, size_bytes: int, read_tokens: int) -> bool:
    """Tell whether a server near the user surely has read less than it was sent."""
    least = size_bytes // BYTES_PER_TOKEN_MAX
    return model.is_near and size_bytes >= SIZE_BYTES_MIN and 0 < read_tokens < least


def text(model: str, read_tokens: int, least_tokens: int) -> str:
    provider, _, name = model.partition("/")
    return (
        f"{model} says that it read {read_tokens:,} tokens of a request that has at least "
        f"{least_tokens:,}: its server seems to have cut what was said first, without an error. "
        "Give the model a larger context (Ollama: OLLAMA_CONTEXT_LENGTH=32768 ollama serve, or "
        "PARAMETER num_ctx 32768 in a Modelfile; LM Studio: when the model is loaded), and say it "
        f"in providers.yaml, so that requests are kept shorter: {provider}: windows: "
        f"{{{name}: 32768}}"
    )


def _has_image(turn: Turn, model: Model) -> bool:
    if turn.history is None:
        return False
    history, messages = turn.history.request(turn.items.values())
    latest = model.encode(messages)
    return any(image in part for image in _IMAGES for part in (history, latest))


async def _was_told(turn: Turn) -> bool:
    found = False
    async for items in turn.session.log.history():
        found = found or any(isinstance(item, Notice) and item.code == CODE for item in items)
    return found
