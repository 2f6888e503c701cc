"""Effort and options of a model call: what is in force, and what a refusal says of them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

import vaala
from tests.vaala.runtime.driving import conversation
from vaala.models.base import Model, ModelEvent, ModelFailure, ModelRequest
from vaala.models.options import Defaults
from vaala.models.provider import Provider
from vaala.testing.function_model import FunctionModel, answer
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import Settings


class Asked(FunctionModel):
    """Answers, or refuses in these words, and keeps what it was asked with."""

    def __init__(self, refusal: str = "", defaults: Defaults | None = None) -> None:
        super().__init__(self._answer)
        self.seen: list[tuple[str | None, int | None, dict[str, Any]]] = []
        self.refusal = refusal
        self._defaults = defaults or Defaults()

    @property
    def defaults(self) -> Defaults:
        return self._defaults

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.seen.append((request.effort, request.output_tokens_max, request.options))
        if self.refusal:
            raise ModelFailure("invalid_request", self.refusal, status=400)
        for event in answer("Fine."):
            yield event


def agent(settings: Settings) -> dict[str, vaala.AgentDefinition]:
    return {"default": vaala.AgentDefinition("default", "Work.", settings=settings)}


BELOW = Defaults("low", {"temperature": 0.1, "top_p": 0.1, "seed": 1, "max_output_tokens": 100})


async def test_the_highest_level_counts(tmp_path: Path) -> None:
    model = Asked(defaults=BELOW)
    agents = agent(Settings(effort="medium", options={"temperature": 0.2, "top_p": 0.2}))
    async with conversation(model, tmp_path, agents=agents) as (_, talk):
        await talk.run("one")
        await talk.configure(Settings(effort="high", options={"temperature": 0.3}))
        await talk.run("two", settings=Settings(options={"temperature": 0.4}))
        await talk.run("three")
    first = {"temperature": 0.2, "top_p": 0.2, "seed": 1}
    assert model.seen == [
        ("medium", 100, first),
        ("high", 100, first | {"temperature": 0.4}),
        ("high", 100, first | {"temperature": 0.3}),
    ]


async def test_null_and_default_take_away_what_is_set_below(tmp_path: Path) -> None:
    model = Asked(defaults=BELOW)
    away = Settings(effort="default", options={"seed": None, "max_output_tokens": None})
    async with conversation(model, tmp_path) as (_, talk):
        await talk.run("one", settings=away)
    assert model.seen == [(None, None, {"temperature": 0.1, "top_p": 0.1})]


PLACES: list[tuple[str, str]] = [
    ("Unsupported value: 'temperature'.", "temperature is set for this message"),
    ("Unknown name 'topP'", "top_p is set for this conversation"),
    ("seed must be even", "seed is set by the agent default"),
    ("max_tokens is too large: 5", "max_output_tokens is set for function in providers.yaml"),
    ("Unrecognized argument: reasoning_effort", "effort is set for function in providers.yaml"),
    ("reasoning.effort is no level", "effort is set for function in providers.yaml"),
]


@pytest.mark.parametrize(("refusal", "place"), PLACES)
async def test_a_refusal_tells_where_the_option_is_set(
    tmp_path: Path, refusal: str, place: str
) -> None:
    model = Asked(refusal, BELOW)
    async with conversation(model, tmp_path, agents=agent(Settings(options={"seed": 3}))) as (
        _,
        talk,
    ):
        await talk.configure(Settings(options={"top_p": 0.5}))
        failed = await talk.run("one", settings=Settings(options={"temperature": 0.9}))
        model.refusal = ""
        assert (await talk.run("two")).text == "Fine.", "the conversation goes on"
    assert failed.turn.message == f"{refusal.rstrip('.')} ({place})"


async def test_a_refusal_of_something_else_stays_as_it_is(tmp_path: Path) -> None:
    async with conversation(Asked("no such model", BELOW), tmp_path) as (_, talk):
        assert (await talk.run("one")).turn.message == "no such model"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"messages": []}, "messages is a part of the request that vaala makes itself"),
        ({"systemInstruction": "x"}, "systemInstruction is a part of the request"),
        ({"max_output_tokens": 0}, "max_output_tokens is a whole number of tokens from 1 on"),
        ({"max_output_tokens": True}, "from 1 on, not True"),
    ],
)
async def test_options_that_are_not_free_are_refused_where_they_come_in(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    settings = Settings(options=options)
    async with conversation(Asked(), tmp_path) as (runtime, talk):
        with pytest.raises(BadRequest, match=words):
            await talk.send("x", settings=settings)
        with pytest.raises(BadRequest, match=words):
            await talk.configure(settings)
        with pytest.raises(BadRequest, match=words):
            await runtime.create_conversation(settings=settings)


def test_what_a_provider_says_of_one_model_goes_before_what_it_says_of_all() -> None:
    provider = Provider(
        "mine",
        "http://127.0.0.1:1",
        defaults=Defaults("low", {"a": 1, "b": 1}),
        model_defaults={"large": Defaults(None, {"b": 2}), "small": Defaults("high")},
    )
    assert provider.defaults_of("large") == Defaults("low", {"a": 1, "b": 2})
    assert provider.defaults_of("small") == Defaults("high", {"a": 1, "b": 1})
    assert provider.defaults_of("other") == provider.defaults


def test_a_model_has_no_defaults_of_its_own() -> None:
    model: Model = FunctionModel(Asked()._answer)  # pyright: ignore[reportPrivateUsage]
    assert model.defaults == Defaults()
