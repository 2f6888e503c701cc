"""How a turn ends that ends oddly: never as an empty success, with a line of its own, once."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import get_args

import pytest

from tests.vaala.runtime.driving import conversation
from vaala.models.base import Finish, FinishReason, ModelEvent, ModelRequest, TextDelta
from vaala.testing.function_model import FunctionModel, newest
from vaala_protocol.settings import StopReason
from vaala_protocol.state import TurnState

ENDINGS: dict[FinishReason, tuple[TurnState, StopReason, str]] = {
    "stop": ("completed", "end_turn", "The model said nothing."),
    "length": ("completed", "max_tokens", "The answer was cut at the token limit."),
    "refusal": ("completed", "refusal", "The model refused to answer (raw)."),
    "content_filter": ("completed", "refusal", "The provider filtered the answer (raw)."),
    "tool_calls": ("failed", "failed", "The model announced tool calls and made none."),
    "malformed_call": ("failed", "failed", "The model made a malformed tool call (raw)."),
    "pause": ("failed", "failed", "The provider paused the answer (raw); ask again."),
    "unknown": ("failed", "failed", "The model stopped for an unknown reason (raw)."),
}


def test_every_reason_has_a_line_of_its_own() -> None:
    assert set(ENDINGS) == set(get_args(FinishReason))
    assert len({line for _, _, line in ENDINGS.values()}) == len(ENDINGS)


@pytest.mark.parametrize("reason", ENDINGS)
async def test_an_answer_without_content_tells_why(  # A4-1, A7-1, A7-3
    tmp_path: Path, reason: FinishReason
) -> None:
    async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if newest(request).prompt == "again":
            yield TextDelta("fine")
            yield Finish("stop")
        else:
            yield Finish(reason, "raw")

    model = FunctionModel(respond)
    async with conversation(model, tmp_path) as (_, talk):
        turn = (await talk.run("go")).turn
        assert (turn.state, turn.stop_reason, turn.message) == ENDINGS[reason]
        assert model.requests == 1
        assert (await talk.run("again")).text == "fine"
