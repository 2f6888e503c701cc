"""A client's keys choose its models: below the configuration, above the server's, for it alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from msgspec.structs import replace

from tests.vaala.services.conftest import Desk
from tests.vaala.services.test_client_environment import virtual_environment
from vaala.discovery.environment import client_environment
from vaala.models.base import CallEnd, Model, ModelRequest, TextDelta, UserSaid
from vaala.models.limits import CLIENTS_MAX
from vaala.models.listing import LocalServer
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala.models.set import ModelSet, open_models
from vaala.services.environment import Environment
from vaala.testing import FixedModels, ScriptedModel, chat_server
from vaala.testing.provider_chat import call, document, text, tool_calls
from vaala_executors.local import LocalExecutor
from vaala_protocol.content import TextContent
from vaala_protocol.errors import BadRequest

NOWHERE = (LocalServer("ollama", 1, "Ollama"),)
REQUEST = ModelRequest("Be brief.", (), b"", (UserSaid((TextContent(text="hello"),)),))
CLIENT = {"OPENAI_API_KEY": "sk-client-0123456789"}


async def ask(model: Model) -> str:
    async with model.stream(REQUEST) as events:
        return "".join([event.text async for event in events if isinstance(event, TextDelta)])


async def chosen(models: ModelSet, keys: dict[str, str], name: str | None = None) -> str:
    model, why = await models.resolve_with(name, keys)
    return f"{model.name}: {why}"


async def test_a_key_of_a_client_is_used_and_goes_no_further() -> None:
    """Server from a bare shell; one client with a key, another with another, a third with none."""
    async with chat_server() as server, open_models((), {}, local_servers=NOWHERE) as models:
        server.answer(lambda request: text("hi"))
        for key in ("sk-one-0123456789", "sk-two-0123456789", "sk-one-0123456789"):
            keys = {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": server.base_url}
            model, why = await models.resolve_with("openai/m", keys)
            assert why == "model openai/m: chosen by name"
            assert await ask(model) == "hi"
            assert server.requests[-1].headers["authorization"] == f"Bearer {key}"
        with pytest.raises(BadRequest, match="openai needs a key"):
            await models.resolve("openai/m")
        with pytest.raises(BadRequest, match="there is no model to run"):
            await models.resolve_with(None, {})
        assert len(server.requests) == 3


async def test_the_order() -> None:
    own = {"OPENAI_API_KEY": "sk-server"}
    async with open_models((), own, local_servers=NOWHERE) as models:
        assert await chosen(models, {}) == (
            "openai/gpt-5.2: model openai/gpt-5.2: OPENAI_API_KEY is set"
        )
        router = {"OPENROUTER_API_KEY": "k"}
        assert (await chosen(models, router)).endswith("OPENROUTER_API_KEY is set at the client")
        assert (await chosen(models, {"ANTHROPIC_API_KEY": "k"})).startswith("anthropic/claude")
        assert (await chosen(models, {})).endswith("OPENAI_API_KEY is set"), "nothing is left over"
    acme = Provider("acme", "http://127.0.0.1:1/v1", models=("big",))
    async with open_models([acme], own, local_servers=NOWHERE) as models:
        assert (await chosen(models, router)).startswith("acme/big")
        assert (await chosen(models, router, "openrouter/x")).startswith("openrouter/x")
    async with open_models([acme], own, default="scripted", local_servers=NOWHERE) as models:
        assert (await chosen(models, router)).startswith("scripted")


async def test_no_key_of_one_side_goes_to_a_url_of_the_other() -> None:
    async with chat_server() as server, chat_server() as other:
        own = {"OPENAI_API_KEY": "sk-server-0123456789", "OPENAI_BASE_URL": server.base_url}
        async with open_models((), own, local_servers=NOWHERE) as models:
            other.answer(lambda request: text("hi"))
            model, _ = await models.resolve_with("openai/m", {"OPENAI_BASE_URL": other.base_url})
            await ask(model)
            assert "authorization" not in other.requests[0].headers
            server.answer(lambda request: text("hi"))
            await ask((await models.resolve("openai/m"))[0])
            assert server.requests[0].headers["authorization"] == "Bearer sk-server-0123456789"


async def test_a_configured_provider_takes_its_key_from_the_client() -> None:
    async with chat_server() as server:
        server.answer(lambda request: text("hi"))
        acme = Provider("acme", server.base_url, models=("m",), key_from="ACME_KEY")
        unusable = {"acme": "the environment variable ACME_KEY is not set"}
        async with open_models([acme], {}, unusable=unusable, local_servers=NOWHERE) as models:
            keys = {"ACME_KEY": "acme-client-key"}
            assert (await chosen(models, keys)).startswith("acme/m")
            await ask((await models.resolve_with("acme", keys))[0])
            assert server.requests[-1].headers["authorization"] == "Bearer acme-client-key"
            with pytest.raises(BadRequest, match="ACME_KEY is not set"):
                await models.resolve("acme")
        # Above the variable of the server, below what stands in the configuration.
        for key_from, sent in (("ACME_KEY", "acme-client-key"), ("providers.yaml", "own")):
            own = replace(acme, key=Secret("own"), key_from=key_from)
            async with open_models([own], {}, local_servers=NOWHERE) as models:
                await ask((await models.resolve_with("acme/m", {**keys, "X": "y"}))[0])
                assert server.requests[-1].headers["authorization"] == f"Bearer {sent}"


async def test_clients_of_models_are_kept_by_key_and_bounded() -> None:
    """What was learned of a server stays learned, while conversations with two keys take turns."""
    refusal = b'{"error": {"message": "unknown field stream_options"}}'
    async with chat_server() as server, open_models((), {}, local_servers=NOWHERE) as models:

        def answer(key: str) -> dict[str, str]:
            return {"OPENAI_API_KEY": key, "OPENAI_BASE_URL": server.base_url}

        server.answer(
            lambda request: (
                document(refusal, status=400) if "stream_options" in request.json else text("hi")
            )
        )
        for key in ("one", "two", "one", "two"):
            await ask((await models.resolve_with("openai/m", answer(key)))[0])
        assert len(server.requests) == 6, "each key was refused once"
        for number in range(CLIENTS_MAX):
            await models.resolve_with("openai/m", answer(f"key{number}"))
        await ask((await models.resolve_with("openai/m", answer("one")))[0])
        assert len(server.requests) == 8, "its client had to go, and learned again"


async def test_models_that_know_no_keys_go_on_as_they_are() -> None:
    models = FixedModels(ScriptedModel({"steps": [{"say": "x"}]}, name="mine"))
    assert (await models.resolve_with(None, CLIENT))[0].name == "mine"
    assert (await models.resolve_with("mine", CLIENT))[1] == "model mine: chosen by name"


async def test_an_answer_with_the_client_s_key_and_a_command_in_its_environment(
    tmp_path: Path, nursery: trio.Nursery
) -> None:
    """The server came from a bare shell; this client has a key and an activated environment."""
    programs = virtual_environment(tmp_path)
    async with chat_server() as server, open_models((), {}, local_servers=NOWHERE) as models:
        shell = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "VIRTUAL_ENV": str(programs.parent),
            "OPENAI_API_KEY": "sk-client-0123456789",
            "OPENAI_BASE_URL": server.base_url,
        }
        server.reply(tool_calls(call("exec_command", command="which python; env")))
        bare = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        async with (
            LocalExecutor(environ=bare) as executor,
            executor.open_workspace(str(tmp_path)) as inner,
        ):
            desk = Desk(tmp_path, inner, nursery, environment=Environment(own=bare))
            desk.environment.adopt(client_environment(shell, str(tmp_path)))
            model, _ = await models.resolve_with("openai/m", desk.environment.keys)
            async with model.stream(REQUEST) as events:
                (arguments,) = [e.arguments async for e in events if isinstance(e, CallEnd)]
            prepared = await desk.caller.tools.prepare("exec_command", arguments, desk.workspace)
            result = await prepared.run(desk.caller.context())
    assert server.requests[0].headers["authorization"] == "Bearer sk-client-0123456789"
    output = str(result.content)
    assert f"{programs}/python" in output
    assert f"VIRTUAL_ENV={programs.parent}" in output
    assert "sk-client" not in output
