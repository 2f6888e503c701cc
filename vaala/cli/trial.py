"""One short request to a model, to see whether it works and how quick it is."""

from __future__ import annotations

import trio
from msgspec import Struct

from vaala.model_options import asked_of
from vaala.models.base import (
    Finish,
    FinishReason,
    Model,
    ModelFailure,
    ModelRequest,
    TextDelta,
    UsageReport,
    UserSaid,
)
from vaala_protocol.content import TextContent
from vaala_protocol.settings import Settings, Usage

TRIAL_S = 180.0
"""A local model may have to be loaded before its first word."""
TRIAL_TEXT_CHARS_MAX = 200

_INSTRUCTIONS = "Answer with one word."
_PROMPT = "Say hello."


class Trial(Struct, frozen=True):
    """How a request went; times in seconds since it was made."""

    model: str
    first_byte_s: float
    seconds: float
    text: str
    """The beginning of the answer; empty when the model only thought."""
    finish: FinishReason
    usage: Usage = Usage()


async def try_model(model: Model) -> Trial:
    """Ask a model for a word, with its own options; raises `ModelFailure`.

    Takes at most `TRIAL_S`, and is not tried again. Cancel: the request is closed at once.
    """
    began = trio.current_time()
    asked = asked_of(Settings(), model)
    said = (UserSaid((TextContent(text=_PROMPT),)),)
    request = ModelRequest(
        _INSTRUCTIONS, (), b"", said,
        effort=asked.effort, output_tokens_max=asked.output_tokens_max, options=asked.options,
    )  # fmt: skip
    first_byte_s: float | None = None
    text, usage, finish = "", Usage(), Finish("unknown")
    with trio.move_on_after(TRIAL_S) as scope:
        async with model.stream(request) as events:
            async for event in events:
                if first_byte_s is None:
                    first_byte_s = trio.current_time() - began
                match event:
                    case TextDelta() if len(text) < TRIAL_TEXT_CHARS_MAX:
                        text += event.text
                    case UsageReport():
                        usage = event.usage
                    case Finish():
                        finish = event
                    case _:
                        pass
    if scope.cancelled_caught:
        raise ModelFailure("network", f"{model.name}: no whole answer within {TRIAL_S:g} s")
    seconds = trio.current_time() - began
    return Trial(
        model.name, first_byte_s or seconds, seconds, text[:TRIAL_TEXT_CHARS_MAX],
        finish.reason, usage,
    )  # fmt: skip
