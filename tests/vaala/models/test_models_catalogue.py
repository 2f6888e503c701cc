"""What is known of models, who says it, and the list that is taken from OpenRouter."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from vaala.cli.exits import CommandFailed
from vaala.cli.models import refresh
from vaala.models.base import ModelFailure
from vaala.models.catalogue import catalogue as shipped
from vaala.models.catalogue.catalogue import Catalogue, read_refreshed
from vaala.models.catalogue.facts import HostFacts, ModelFacts
from vaala.models.catalogue.refresh import fetch_list, write_list
from vaala.models.catalogue.reported import reported_facts
from vaala.models.choose import PROVIDERS
from vaala.models.http import open_http
from vaala.models.limits import TOKENS_MAX
from vaala.models.listing import LocalServer
from vaala.models.provider import Provider
from vaala.models.set import ModelSet, open_models
from vaala.testing import Reply, chat_server
from vaala.testing.provider_chat import document
from vaala_protocol.base import encode
from vaala_protocol.prices import CatalogueSource, ModelPrices

ANTHROPIC = "https://api.anthropic.com/v1"
ROUTER = "https://openrouter.ai/api/v1"
PRICES = ("input", "cache_read", "cache_write", "output")
SHIPPED = msgspec.json.decode(
    Path(shipped.__file__).with_name("catalogue.json").read_bytes(), type=tuple[HostFacts, ...]
)
ENTRY = {
    "id": "a/b",
    "context_length": 200_000,
    "top_provider": {"max_completion_tokens": 64_000},
    "architecture": {"input_modalities": ["text", "image"]},
    "supported_parameters": ["tools", "temperature"],
    "pricing": {
        "prompt": "0.000003", "completion": "0.000015", "input_cache_read": "0.0000003",
        "request": "0",
    },
}  # fmt: skip
FACTS = ModelFacts(
    window=200_000,
    output=64_000,
    features=("tools", "images"),
    prices=ModelPrices(input="3", output="15", cache_read="0.3"),
)


def listing(*entries: object) -> Reply:
    return document(encode({"data": entries}))


@pytest.mark.parametrize("host", SHIPPED, ids=lambda host: host.host)
def test_the_shipped_list_makes_sense_and_says_where_it_is_from(host: HostFacts) -> None:
    assert host.source.url.startswith("https://")
    assert len(host.source.as_of.split("-")) == 3
    assert len(host.models) >= 5
    for name, facts in host.models.items():
        assert facts != ModelFacts(), name
        assert facts.window is None or facts.window >= (facts.output or 1), name
        if facts.prices is None:
            continue
        tiers = [facts.prices] + ([facts.prices.long] if facts.prices.long else [])
        given = [Decimal(p) for tier in tiers for p in (getattr(tier, k) for k in PRICES) if p]
        assert all(0 < price < 1000 for price in given), name
        assert None not in (facts.prices.input, facts.prices.output), name
        if facts.prices.cache_read is not None:  # else it would not be worth it
            assert Decimal(facts.prices.cache_read) < Decimal(facts.prices.input or 0), name


@pytest.mark.parametrize("name", ["anthropic", "openai", "gemini"])
def test_the_default_models_are_known_with_window_and_prices(name: str) -> None:
    found = Catalogue().find(PROVIDERS[name].url, PROVIDERS[name].model)
    assert found is not None
    facts, _ = found
    assert facts.prices is not None
    assert (facts.window or 0) >= 200_000
    assert facts.prices.cache_read is not None


@pytest.mark.parametrize(
    ("url", "model", "is_known"),
    [
        (ANTHROPIC, "claude-haiku-4-5", True),
        (ANTHROPIC, "claude-haiku-4-5-20251001", True),  # a snapshot of it
        ("https://api.openai.com/v1", "gpt-5.2-2025-12-11", True),
        ("https://api.anthropic.com:443/", "claude-haiku-4-5", True),
        (ANTHROPIC, "claude-haiku-4", False),
        ("https://proxy.example/v1", "claude-haiku-4-5", False),  # its prices are its own
        ("https://api.anthropic.com.example/v1", "claude-haiku-4-5", False),
        ("http://[", "claude-haiku-4-5", False),
    ],
)
def test_a_model_is_found_at_its_own_server_only(url: str, model: str, is_known: bool) -> None:
    assert (Catalogue().find(url, model) is not None) is is_known


@pytest.mark.parametrize(
    ("entry", "facts"),
    [
        (ENTRY, FACTS),
        ({"max_input_tokens": 1_000_000, "max_tokens": 128_000},  # Anthropic
         ModelFacts(window=1_000_000, output=128_000)),
        ({"inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536},  # Gemini
         ModelFacts(window=1_048_576, output=65_536)),
        ({"max_model_len": 32_768}, ModelFacts(window=32_768)),  # vLLM
        ({"max_context_length": 131_072, "loaded_context_length": 4096},  # LM Studio
         ModelFacts(window=4096)),
        ({}, ModelFacts()),
        ({"context_length": -1, "pricing": {"prompt": "-1", "completion": "-1"}}, ModelFacts()),
        ({"context_length": True, "max_tokens": 1.5, "pricing": [], "architecture": "x",
          "supported_parameters": {}, "top_provider": None}, ModelFacts()),
        ({"context_length": TOKENS_MAX + 1}, ModelFacts()),
        ({"pricing": {"prompt": "1e400", "completion": "1"}}, ModelFacts()),
        ({"pricing": {"prompt": "1E+999999999", "completion": "1"}}, ModelFacts()),
        ({"pricing": {"prompt": "NaN", "completion": "free"}}, ModelFacts()),
        ({"pricing": {"prompt": 0.1, "completion": 0.2}}, ModelFacts()),
        ({"pricing": {"prompt": "0", "completion": "0.000"}},
         ModelFacts(prices=ModelPrices(input="0", output="0"))),
    ],
)  # fmt: skip
def test_what_a_server_says_is_taken_as_far_as_it_makes_sense(
    entry: Mapping[str, Any], facts: ModelFacts
) -> None:
    assert reported_facts(entry) == facts


async def test_configuration_goes_before_server_before_catalogue() -> None:
    own = ModelPrices(input="1", output="2", cache_read="1", cache_write="1")
    async with chat_server() as server:
        here = Provider("here", server.base_url, windows={"a": 10}, prices={"a": own})
        real = Provider("real", ANTHROPIC, windows={"claude-haiku-4-5": 7})
        server.answer(lambda _: listing({**ENTRY, "id": "a"}, {**ENTRY, "id": "b"}))
        async with open_models([here, real], {}, local_servers=()) as models:
            before = models.known("here/b", {})
            assert (before.facts, before.sources) == (ModelFacts(), {})
            asked = await models.ask("here/a", {})
            assert (asked.facts.window, asked.facts.prices) == (10, own)
            assert asked.sources == {
                "window": "config", "prices": "config", "output": "server", "features": "server",
            }  # fmt: skip
            assert asked.catalogue is None
            assert models.known("here/b", {}).facts == FACTS
            known = models.known("real/claude-haiku-4-5", {})
            assert (known.facts.window, known.sources["window"]) == (7, "config")
            assert (known.facts.output, known.sources["output"]) == (64_000, "catalogue")
            assert known.catalogue is not None
            assert known.catalogue.url.startswith("https://platform.claude.com/")


async def _window(models: ModelSet, name: str | None) -> int | None:
    model, _ = await models.resolve(name)
    return model.window_tokens


async def test_the_window_of_a_model_is_what_is_known() -> None:
    providers = [
        Provider("a", ANTHROPIC, api="anthropic", windows={"claude-opus-5-5": 200_000}),
        Provider("b", "http://127.0.0.1:1/v1"),
    ]
    async with open_models(providers, {"GEMINI_API_KEY": "k"}, local_servers=()) as models:
        assert await _window(models, "a/claude-opus-5-5") == 200_000
        assert await _window(models, "a/claude-sonnet-5-5") == 1_000_000
        assert await _window(models, "gemini") == 1_048_576
        assert await _window(models, "b/claude-sonnet-5-5") is None


async def test_a_local_server_says_its_window_while_it_is_looked_for() -> None:
    async with chat_server() as server:
        server.answer(lambda _: listing({"id": "m", "max_model_len": 4096}))
        local = LocalServer("vllm", server.port, "vLLM")
        async with open_models((), {}, local_servers=[local]) as models:
            assert await _window(models, None) == 4096


async def test_a_server_that_does_not_answer_changes_nothing() -> None:
    provider = Provider("gone", "http://127.0.0.1:1/v1", windows={"m": 5})
    async with open_models([provider], {}, local_servers=()) as models:
        assert (await models.ask("gone/m", {})).facts == ModelFacts(window=5)
        assert (await models.ask("nobody/m", {})).facts == ModelFacts()


async def test_a_list_is_taken_kept_and_found(tmp_path: Path) -> None:
    file = tmp_path / "state" / "catalogue.json"
    async with chat_server() as server:
        server.answer(lambda _: listing(ENTRY, {"id": "no/price"}, {"id": 3}))
        url = f"{server.base_url}/models"
        assert await refresh(file, {}, url) == 2
        assert server.requests[0].method == "GET"
        assert "authorization" not in server.requests[0].headers
    catalogue = Catalogue(file)
    found = catalogue.find(ROUTER, "a/b")
    assert found is not None
    assert (found[0], found[1].url) == (FACTS, url)
    assert catalogue.find(ROUTER, "no/price") == (ModelFacts(), found[1])
    assert catalogue.find(ANTHROPIC, "a/b") is None
    assert catalogue.find(ANTHROPIC, "claude-sonnet-5-5") is not None
    assert [path.name for path in file.parent.iterdir()] == ["catalogue.json"]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"data": [{"id": "m"}]}', b'{"data": 1}', b"\xff" * 100]
)
async def test_a_list_that_is_none_leaves_the_one_before(tmp_path: Path, body: bytes) -> None:
    file = tmp_path / "catalogue.json"
    kept = HostFacts(host="openrouter.ai", source=CatalogueSource(url="u", as_of="d"), models={})
    write_list(kept, file)
    async with chat_server() as server:
        server.answer(lambda _: Reply((body,)))
        with pytest.raises(CommandFailed, match="lists no model with a price"):
            await refresh(file, {}, f"{server.base_url}/models")
    assert read_refreshed(file) == kept


async def test_a_server_that_refuses_is_told() -> None:
    async with chat_server() as server, open_http({}) as http:
        with pytest.raises(ModelFailure, match="openrouter"):
            await fetch_list(http, "2026-12-01", f"{server.base_url}/models")


@pytest.mark.parametrize("content", [b"", b"{", b'{"host": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_kept_list_that_cannot_be_read_is_told_and_left_out(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "catalogue.json"
    file.write_bytes(content)
    assert Catalogue(file).find(ANTHROPIC, "claude-sonnet-5-5") is not None
    assert "vaala models refresh" in caplog.text


def test_a_list_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "catalogue.json").mkdir()
    facts = HostFacts(host="h", source=CatalogueSource(url="u", as_of="d"), models={})
    with pytest.raises(OSError, match="directory"):
        write_list(facts, tmp_path / "catalogue.json")
    assert [path.name for path in tmp_path.iterdir()] == ["catalogue.json"]


async def test_a_list_that_cannot_be_kept_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with chat_server() as server:
        server.answer(lambda _: listing(ENTRY))
        with trio.fail_after(30), pytest.raises(CommandFailed, match="cannot be written"):
            await refresh(tmp_path / "file" / "c.json", {}, f"{server.base_url}/models")
