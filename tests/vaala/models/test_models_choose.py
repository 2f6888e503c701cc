"""Which model runs: by name, by configuration, by key, by a local server, or none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from msgspec.structs import replace

from vaala.models.base import Finish, ModelRequest
from vaala.models.limits import CHOICE_KEPT_S
from vaala.models.listing import LocalServer
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala.models.set import open_models
from vaala.testing import STALL, ChatServer, FixedModels, Reply, ScriptedModel, chat_server
from vaala.testing.provider_chat import document, error, text
from vaala_protocol.errors import BadRequest

NOWHERE = (LocalServer("ollama", 1, "Ollama"), LocalServer("lmstudio", 2, "LM Studio"))
ACME = Provider("acme", "http://127.0.0.1:1/v1", models=("big", "small"))
SAY = ScriptedModel({"steps": [{"say": "x"}]}, name="mine")


async def resolve(
    name: str | None,
    environ: Mapping[str, str] | None = None,
    *,
    providers: Sequence[Provider] = (),
    local: Sequence[LocalServer] = NOWHERE,
    **more: Any,
) -> tuple[str, str]:
    opened = open_models(providers, environ or {}, local_servers=local, **more)
    async with opened as models:
        model, why = await models.resolve(name)
        return model.name, why


async def refused(name: str | None, environ: Mapping[str, str] | None = None, **more: Any) -> str:
    with pytest.raises(BadRequest) as caught:
        await resolve(name, environ, **more)
    return str(caught.value)


KEYS = [
    ({"OPENAI_API_KEY": "k"}, "openai/gpt-5.2", "OPENAI_API_KEY is set"),
    ({"OPENROUTER_API_KEY": "k"}, "openrouter/anthropic/claude-sonnet-4.5",
     "OPENROUTER_API_KEY is set"),
    ({"OPENROUTER_API_KEY": "k", "OPENAI_API_KEY": "k"}, "openai/gpt-5.2", "OPENAI_API_KEY is set"),
    ({"OPENAI_API_KEY": " ", "OPENROUTER_API_KEY": "k"}, "openrouter/anthropic/claude-sonnet-4.5",
     "OPENROUTER_API_KEY is set"),
    ({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}, "anthropic/claude-sonnet-5-5",
     "ANTHROPIC_API_KEY is set"),
    ({"GOOGLE_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, "gemini/gemini-3.5-flash",
     "GOOGLE_API_KEY is set"),
    ({"GEMINI_API_KEY": "k", "GOOGLE_API_KEY": "g"}, "gemini/gemini-3.5-flash",
     "GEMINI_API_KEY is set"),
]  # fmt: skip


@pytest.mark.parametrize(("environ", "name", "why"), KEYS)
async def test_the_first_key_decides(environ: dict[str, str], name: str, why: str) -> None:
    chosen, reason = await resolve(None, environ)
    assert chosen == name
    assert why in reason


async def test_the_configuration_goes_before_keys() -> None:
    environ = {"OPENAI_API_KEY": "k"}
    assert await resolve(None, environ, providers=[ACME]) == (
        "acme/big",
        "model acme/big: the first provider of the configuration",
    )
    assert await resolve(None, environ, providers=[ACME], default="acme/small") == (
        "acme/small",
        "model acme/small: the default of the configuration",
    )
    assert (await resolve(None, environ, default="gpt-x"))[0] == "openai/gpt-x"
    unusable = {"acme": "the environment variable ACME_KEY is not set"}
    chosen, _ = await resolve(None, environ, providers=[ACME], unusable=unusable)
    assert chosen == "openai/gpt-5.2"


async def test_names() -> None:
    given: dict[str, Any] = {"providers": [ACME], "environ": {"OPENROUTER_API_KEY": "k"}}
    for name, chosen in [
        ("acme/small", "acme/small"),
        ("acme", "acme/big"),
        ("small", "acme/small"),
        ("openrouter/qwen/qwen3", "openrouter/qwen/qwen3"),
        ("openrouter", "openrouter/anthropic/claude-sonnet-4.5"),
        ("ollama/qwen3", "ollama/qwen3"),
        ("scripted", "scripted"),
    ]:
        assert (await resolve(name, **given))[0] == chosen
    beside = await resolve(
        "small", providers=[replace(ACME, name="first"), ACME], default="acme/big"
    )
    assert beside[0] == "acme/small"


async def test_a_configured_provider_hides_the_one_of_the_environment() -> None:
    mine = Provider("openai", "http://127.0.0.1:1/v1", models=("local",))
    assert (await resolve("openai", {"OPENAI_API_KEY": "k"}, providers=[mine]))[0] == "openai/local"


async def test_models_given_as_objects() -> None:
    models = {"mine": SAY}
    assert await resolve("mine", models=models) == ("mine", "model mine: chosen by name")
    assert (await resolve(None, {"OPENAI_API_KEY": "k"}, models=models))[0] == "mine"


async def test_wrong_names_say_what_there_is() -> None:
    assert "did you mean acme/small" in await refused("acme/smal", providers=[ACME])
    unknown = await refused("acne/small", providers=[ACME])
    assert unknown.startswith("no model is called 'acne/small'; write PROVIDER/MODEL; did you mean")
    assert "acme/small" in unknown
    assert "there are" in await refused("zzz/zzz")
    assert "set OPENAI_API_KEY" in await refused("openai/gpt-5.2")
    assert "set ANTHROPIC_API_KEY" in await refused("anthropic/claude")
    assert "set GEMINI_API_KEY" in await refused("gemini", {"ANTHROPIC_API_KEY": "k"})
    reason = await refused("acme/big", providers=[ACME], unusable={"acme": "ACME_KEY is not set"})
    assert reason == "the provider acme cannot be used: ACME_KEY is not set"


async def test_nothing_found_names_what_was_looked_for_and_three_ways_out() -> None:
    told = await refused(None)
    for part in [
        "OPENROUTER_API_KEY", "OPENAI_BASE_URL", "1 (Ollama)", "2 (LM Studio)",
        "set a key", "start a local server",
        "--model scripted",
    ]:  # fmt: skip
        assert part in told


def listed(*names: str) -> Reply:
    return document(json.dumps({"data": [{"id": name} for name in names]}).encode())


def at(server: ChatServer, name: str = "ollama") -> LocalServer:
    return LocalServer(name, server.port, name.title())


async def test_a_local_server_is_found_and_used(mock_clock: trio.testing.MockClock) -> None:
    async with chat_server() as server:
        server.reply(listed("nomic-embed-text", "qwen3", "llama"), text("hi"))
        async with open_models((), {}, local_servers=[NOWHERE[1], at(server)]) as models:
            model, why = await models.resolve(None)
            assert (model.name, why) == (
                "ollama/qwen3",
                f"model ollama/qwen3: Ollama runs here on port {server.port}",
            )
            async with model.stream(ModelRequest("", (), b"", ())) as events:
                assert [event async for event in events][-1] == Finish("stop", "stop")
        assert [request.path for request in server.requests] == [
            "/v1/models", "/v1/chat/completions",
        ]  # fmt: skip
        assert "authorization" not in server.requests[1].headers


async def test_local_servers_are_asked_side_by_side_and_the_first_one_wins(
    mock_clock: trio.testing.MockClock,
) -> None:
    async with chat_server() as first, chat_server() as second, chat_server() as third:
        gate = trio.Event()

        def late(request: object) -> Reply:
            gate.set()
            return listed("b")

        first.reply(Reply((gate, *listed("a").body), length=listed("a").length))
        second.answer(late)
        third.reply(document(b"<html>", content_type="text/html"))
        servers = [at(third, "t"), at(first, "f"), at(second, "s")]
        assert (await resolve(None, local=servers))[0] == "f/a"


async def test_a_server_that_does_not_answer_is_passed_over(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with chat_server() as silent:
        silent.answer(lambda request: Reply((STALL,)))
        assert "there is no model to run" in await refused(None, local=[at(silent)])


async def test_the_choice_is_made_once_for_a_while(mock_clock: trio.testing.MockClock) -> None:
    async with chat_server() as server:
        server.answer(lambda request: listed(f"m{len(server.requests)}"))
        async with open_models((), {}, local_servers=[at(server)]) as models:
            names: list[str] = []

            async def one() -> None:
                names.append((await models.resolve(None))[0].name)

            async with trio.open_nursery() as nursery:
                for _ in range(5):
                    nursery.start_soon(one)
            assert names == ["ollama/m1"] * 5
            mock_clock.jump(CHOICE_KEPT_S + 1)
            assert (await models.resolve(None))[0].name == "ollama/m2"


async def test_a_base_url_without_a_key() -> None:
    async with chat_server() as server:
        server.reply(listed("qwen3"))
        environ = {"OPENAI_BASE_URL": f"{server.base_url}/"}
        assert await resolve(None, environ) == (
            "openai/qwen3",
            "model openai/qwen3: OPENAI_BASE_URL is set",
        )
        server.reply(error(404, "no such path"))
        told = await refused(None, environ)
        assert "name one, as openai/MODEL" in told
        assert "HTTP 404" in told
        server.reply(listed("only-embed"))
        assert "lists no model that can answer" in await refused(None, environ)
        assert (await resolve("openai/any", environ))[0] == "openai/any"


async def test_the_list_is_asked_with_the_key() -> None:
    async with chat_server() as server:
        server.reply(listed("m"))
        provider = Provider(
            "p", server.base_url, key=Secret("k-123456"), headers={"x-team": Secret("red")}
        )
        assert (await resolve("p", providers=[provider]))[0] == "p/m"
        headers = server.requests[0].headers
        assert (headers["authorization"], headers["x-team"]) == ("Bearer k-123456", "red")


async def test_a_script_file_by_name(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("steps: [{say: hi}]")
    assert (await resolve(f"scripted:{path}"))[0] == f"scripted:{path}"
    assert "cannot be read" in await refused(f"scripted:{path}.no")


async def test_fixed_models() -> None:
    other = ScriptedModel({"steps": [{"say": "y"}]}, name="other")
    models = FixedModels(SAY, other)
    assert (await models.resolve(None))[0] is SAY
    assert (await models.resolve("other"))[0] is other
    with pytest.raises(BadRequest, match="no model is called 'x'; there are mine, other"):
        await models.resolve("x")
