"""Which model would run: told for the keys that the asking client has, with the ways out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import Server, machine, server
from vaala.config.keeper import Keeper, open_keeper
from vaala.models.base import Model
from vaala.models.secret import Secret
from vaala.server.wire import PeerInfo
from vaala.testing.models import FixedModels
from vaala_protocol.errors import BadRequest, ModelUnreachable, NotFound
from vaala_protocol.methods.catalog import (
    ModelGetParams,
    ModelListParams,
    ModelResolveParams,
    ModelResolveResult,
)
from vaala_protocol.methods.client import ClientEnvironmentParams
from vaala_protocol.methods.conversation import ConversationCreateParams, ConversationRenameParams
from vaala_protocol.methods.runtime import ClientEnvironment, WantedVariables
from vaala_protocol.methods.session import SessionConfigureParams, SessionConfigureResult
from vaala_protocol.prices import ModelPrices
from vaala_protocol.settings import Settings

PROVIDERS = """
team: {base_url: "http://127.0.0.1:1/v1", api_key_env: TEAM_KEY, models: [m]}
open: {base_url: "http://127.0.0.1:1/v1", models: [n]}
"""
WITH_KEY = ClientEnvironment(directory="/home/me", keys={"TEAM_KEY": "the-key-of-the-team"})


@asynccontextmanager
async def configured(directory: Path, **files: str) -> AsyncGenerator[tuple[Server, Keeper]]:
    for name, text in {"providers": PROVIDERS, **files}.items():
        (directory / f"{name}.yaml").write_text(text)
    async with (
        open_keeper(directory, {}) as keeper,
        server(keeper.model_set, agents=keeper.config.agents, executors=machine()) as served,
    ):
        served.api.config = keeper
        yield served, keeper


async def test_a_key_of_the_client_makes_its_models_usable(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with (
        configured(tmp_path) as (served, _),
        served.client("with", environment=WITH_KEY) as client,
        served.client("without") as poor,
    ):
        for one, usable, default in ((client, True, "team/m"), (poor, False, "open/n")):
            listed = await one.call(ModelListParams())
            assert {model.name: model.usable for model in listed.models}["team/m"] is usable
            assert listed.default == default
            assert (await one.call(ModelGetParams(name="team/m"))).usable is usable
            found = await one.call(ModelResolveParams())
            assert (found.model, found.source) == (default, "default")
            talk = await one.create()
            options = (await one.call(SessionConfigureParams(conversation_id=talk))).options
            assert next(option.value for option in options if option.id == "model") == default


async def test_a_key_for_no_configured_provider_is_listed_with_its_source(
    autojump_clock: object, tmp_path: Path
) -> None:
    environment = ClientEnvironment(directory="/", keys={"OPENROUTER_API_KEY": "some-key"})
    async with (
        configured(tmp_path, providers="") as (served, _),
        served.client(environment=environment) as client,
    ):
        listed = await client.call(ModelListParams())
        sources = {model.provider: model.source for model in listed.models}
        assert sources["openrouter"] == "the variable OPENROUTER_API_KEY at the client"


async def test_what_is_known_of_a_model_is_told_with_who_says_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    providers = """
real: {base_url: "https://api.anthropic.com/v1", api: anthropic, models: [claude-sonnet-5-5],
  api_key_env: REAL_KEY, windows: {claude-sonnet-5-5: 200000}}
open: {base_url: "http://127.0.0.1:1/v1", prices: {n: {input: 1, output: 2.5}}}
"""
    async with configured(tmp_path, providers=providers) as (served, _), served.client() as client:
        listed = (await client.call(ModelListParams())).models[0]
        assert await client.call(ModelGetParams(name="real/claude-sonnet-5-5")) == listed
        assert (listed.context_tokens, listed.output_tokens) == (200_000, 128_000)
        assert listed.facts == {
            "contextTokens": "config", "outputTokens": "catalogue", "features": "catalogue",
            "prices": "catalogue",
        }  # fmt: skip
        assert listed.catalogue is not None
        in_no_list = await client.call(ModelGetParams(name="open/n"))
        assert in_no_list.prices == ModelPrices(
            input="1", cache_read="1", cache_write="1", output="2.5"
        )
        assert (in_no_list.facts, in_no_list.catalogue) == ({"prices": "config"}, None)
        scripted = await client.call(ModelGetParams(name="scripted"))
        assert (scripted.source, scripted.facts) == ("built in", {})
        with pytest.raises(NotFound, match="no model is called 'x/y'"):
            await client.call(ModelGetParams(name="x/y"))
        with pytest.raises(ModelUnreachable):
            await client.call(ModelGetParams(name="open"))


async def test_what_names_the_model_is_told(autojump_clock: object, tmp_path: Path) -> None:
    agents = "writer: {model: open/n}\ndefault: {}\n"
    async with (
        configured(tmp_path, agents=agents) as (served, _),
        served.client(environment=WITH_KEY) as client,
    ):

        async def resolve(**params: str) -> tuple[str, str, str]:
            found: ModelResolveResult = await client.call(ModelResolveParams(**params))
            assert found.provider == found.model.partition("/")[0]
            return found.model, found.source, found.reason

        assert await resolve(agent="writer") == ("open/n", "agent", "model open/n: agent writer")
        assert (await resolve(agent="default"))[:2] == ("team/m", "default")
        assert (await resolve(agent="writer", name="team/m"))[:2] == ("team/m", "name")
        made = await client.call(
            ConversationCreateParams(directory="/w", settings=Settings(model="open/n"))
        )
        assert await resolve(conversation_id=made.id) == (
            "open/n", "conversation", "model open/n: this conversation",
        )  # fmt: skip
        plain = await client.create()
        assert (await resolve(conversation_id=plain))[:2] == ("team/m", "default")
        with pytest.raises(NotFound):
            await resolve(conversation_id="019b0000-0000-7000-8000-000000000000")
        with pytest.raises(BadRequest, match="no agent 'x'; there are: default, writer"):
            await resolve(agent="x")


async def test_without_a_model_the_ways_out_are_told(
    autojump_clock: object, tmp_path: Path
) -> None:
    agents = "writer: {model: gone/m}\n"
    async with (
        configured(tmp_path, agents=agents, models="default: team/m\n") as (served, _),
        served.client() as client,
    ):
        with pytest.raises(BadRequest, match=r"models\.yaml: default: .*TEAM_KEY is not set"):
            await client.call(ModelResolveParams())
        with pytest.raises(BadRequest, match=r"^agent writer: no model is called 'gone/m'"):
            await client.call(ModelResolveParams(agent="writer"))
        with pytest.raises(BadRequest, match=r"^no model is called 'x/y'"):
            await client.call(ModelResolveParams(name="x/y"))


async def test_a_conversation_has_the_keys_of_whoever_speaks_in_it(
    autojump_clock: object, tmp_path: Path
) -> None:
    """A client without an environment of its own asks what a turn would run with."""
    async with (
        configured(tmp_path) as (served, _),
        served.client("with", environment=WITH_KEY) as client,
        served.client("without") as poor,
    ):
        talk = await client.create()
        (await served.runtime.conversation(talk)).environment.adopt(WITH_KEY)
        found = await poor.call(ModelResolveParams(conversation_id=talk))
        assert found.model == "team/m"
        options = (await poor.call(SessionConfigureParams(conversation_id=talk))).options
        assert options[0].value == "team/m"


async def test_a_search_for_the_model_holds_up_no_later_change(autojump_clock: object) -> None:
    class Slow(FixedModels):
        found = trio.Event()

        async def resolve(self, name: str | None) -> tuple[Model, str]:
            await self.found.wait()
            return await super().resolve(name)

    models = Slow(script({"say": "ok"}))
    async with server(models, executors=machine()) as served, served.client() as client:
        talk = await client.create()
        settings = Settings(effort="high")
        asked = await client.begin(SessionConfigureParams(conversation_id=talk, settings=settings))
        renamed = await client.call(ConversationRenameParams(conversation_id=talk, title="new"))
        assert renamed.title == "new"
        models.found.set()
        configured: SessionConfigureResult = await client.answer_of(asked)
        assert configured.settings.effort == "high"
        assert [option.id for option in configured.options] == ["model", "mode", "effort"]


async def test_clients_are_told_what_the_configuration_names(
    autojump_clock: object, tmp_path: Path
) -> None:
    environment = "forward: [GIT_AUTHOR_NAME, PATH]\n"
    providers = PROVIDERS + 'o: {base_url: "http://127.0.0.1:1", api_key_env: OPENAI_API_KEY}\n'
    async with (
        configured(tmp_path, environment=environment, providers=providers) as (served, _),
        served.client() as near,
        served.client(peer=PeerInfo("10.0.0.7:1", local=False)) as far,
    ):
        assert near.greeting is not None
        assert far.greeting is not None
        assert near.greeting.wanted == WantedVariables(
            keys=("TEAM_KEY",), forward=("GIT_AUTHOR_NAME",)
        )
        assert far.greeting.wanted == WantedVariables()


async def test_an_environment_told_later_takes_the_place_of_the_first(
    autojump_clock: object, tmp_path: Path
) -> None:
    first = ClientEnvironment(directory="/home/me", keys={"OTHER_KEY": "another-key"})
    far_away = PeerInfo("10.0.0.7:1", local=False)
    async with configured(tmp_path) as (served, _):
        async with served.client(environment=first) as client:
            assert (await client.call(ModelResolveParams())).model == "open/n"
            await client.call(ClientEnvironmentParams(environment=WITH_KEY))
            assert (await client.call(ModelResolveParams())).model == "team/m"
        assert {Secret("the-key-of-the-team"), Secret("another-key")} <= set(served.learned)
        async with served.client(peer=far_away) as far:
            with pytest.raises(BadRequest, match="own machine"):
                await far.call(ClientEnvironmentParams(environment=WITH_KEY))


async def test_a_base_url_is_no_secret(autojump_clock: object, tmp_path: Path) -> None:
    keys = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "the-key"}
    async with (
        configured(tmp_path) as (served, _),
        served.client(environment=ClientEnvironment(directory="/", keys=keys)),
    ):
        assert served.learned == [Secret("the-key")]
