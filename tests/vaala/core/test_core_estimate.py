"""Tokens from bytes, and the window that a refusal tells."""

from __future__ import annotations

import pytest

from tests.vaala.runtime.small_window import SmallWindow
from vaala.agent.estimate import Estimates, stated_window
from vaala.testing.function_model import FunctionModel
from vaala_protocol.settings import Usage


async def _nothing(request: object):  # type: ignore[no-untyped-def] # never called
    yield request


def model(name: str = "m", window: int = 20_000, *, told: bool = True) -> FunctionModel:
    return SmallWindow(_nothing, window, told=told, name=name)


def test_a_report_puts_the_guess_right_for_its_model_alone() -> None:  # B8-1
    estimates = Estimates()
    assert 20_000 < estimates.tokens(model(), 100_000) < 35_000
    estimates.reported(model(), 100_000, Usage(input=9, cache_read=17_102, output=500))
    assert estimates.tokens(model(), 100_000) == 17_111
    assert estimates.tokens(model("other"), 100_000) > 20_000
    assert estimates.size(model(), 17_111) == 100_000


@pytest.mark.parametrize("read", [0, 1, 10_000_000])
def test_a_report_that_cannot_be_is_not_believed(read: int) -> None:
    estimates = Estimates()
    before = estimates.tokens(model(), 100_000)
    estimates.reported(model(), 100_000, Usage(input=read))
    assert estimates.tokens(model(), 100_000) == before


def test_what_is_sure_is_less_than_what_is_likely() -> None:
    estimates = Estimates()
    assert estimates.surely(model(), 10_000) < estimates.tokens(model(), 10_000)
    estimates.reported(model(), 10_000, Usage(input=10_000))
    assert estimates.surely(model(), 10_000) == 8_000


def test_a_refusal_teaches_the_window() -> None:  # B9-3, B9-4
    estimates = Estimates()
    unknown = model(told=False)
    assert estimates.window(unknown) is None
    estimates.refused(unknown, 400_000, "This model's maximum context length is 32768 tokens.")
    assert estimates.window(unknown) == 32_768
    assert estimates.window(model("other", told=False)) is None
    assert estimates.window(model("smaller", 8_000)) == 8_000


def test_a_refusal_without_a_number_bounds_it_until_more_is_taken() -> None:
    estimates = Estimates()
    unknown = model(told=False)
    estimates.refused(unknown, 100_000, "too long")
    bound = estimates.window(unknown)
    assert bound == estimates.tokens(unknown, 100_000)
    estimates.refused(unknown, 50_000, "too long")
    assert estimates.window(unknown) == estimates.tokens(unknown, 50_000)
    estimates.reported(unknown, 100_000, Usage(input=bound))
    assert estimates.window(unknown) is None


def test_a_refusal_below_the_window_puts_the_guess_right() -> None:
    estimates = Estimates()
    estimates.refused(model(window=32_000), 20_000, "maximum context length is 32000 tokens")
    assert estimates.tokens(model(), 20_000) >= 32_000


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("This model's maximum context length is 32,768 tokens, but you sent 40000", 32_768),
        ("prompt is too long: 213330 tokens > 200000 maximum", 200_000),
        ("input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", 200_000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
         1_048_576),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
         131_072),
        ("request (9000 tokens) exceeds the available context size (4096 tokens)", 4_096),
        ("Prompt has 9000 tokens, too large for model with 8192 maximum context length", 8_192),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 6000", 4_096),
        ("the request does not fit the model's context window (HTTP 400)", None),
        ("Your input exceeds the context window of this model.", None),
        ("maximum context length is 5", None),
    ],
)  # fmt: skip
def test_how_servers_tell_their_window(message: str, window: int | None) -> None:
    assert stated_window(message) == window
