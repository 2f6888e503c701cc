"""`vaala models`: what there is to choose from, with and without a server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.vaala.cli.conftest import Vaala

PROVIDERS = """
real: {base_url: "https://api.anthropic.com/v1", api: anthropic, api_key_env: REAL_KEY,
  models: [claude-haiku-5-5]}
team: {base_url: "http://127.0.0.1:1/v1", models: [m], windows: {m: 4096},
  prices: {m: {input: 1, output: 2.5}}}
"""


@pytest.fixture(autouse=True)
def configuration(isolated: Path) -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    directory.mkdir(parents=True)
    (directory / "providers.yaml").write_text(PROVIDERS)


def test_models_are_listed_with_windows_prices_and_the_default(vaala: Vaala) -> None:
    listed = vaala("models", "list")
    assert listed.out.splitlines() == [
        "  real/claude-haiku-5-5  cannot be used: the environment variable REAL_KEY is not set",
        "* team/m                 4,096 tokens; $1 in, $2.5 out; from providers.yaml",
        "  scripted               from built in",
    ]
    assert listed.err == "model team/m: the first provider of the configuration\n"


def test_a_model_is_shown_the_same_by_a_server(vaala: Vaala) -> None:
    alone = vaala("models", "show", "real/claude-haiku-5-5")
    assert alone.out.splitlines() == [
        "real/claude-haiku-5-5",
        "  from      providers.yaml",
        "  unusable  the environment variable REAL_KEY is not set",
        "  window    1,000,000 tokens (the catalogue)",
        "  answer    128,000 tokens (the catalogue)",
        "  features  tools, images, reasoning (the catalogue)",
        "  prices    in US dollars for a million tokens (the catalogue)",
        "    input       0.10; 0.50 where the prompt has more than 100,000 tokens",
        "    cache read  0.01; 0.05 where the prompt has more than 100,000 tokens",
        "    cache write 0.125; 0.625 where the prompt has more than 100,000 tokens",
        "    output      0.50; 2.50 where the prompt has more than 100,000 tokens",
        "  catalogue https://platform.claude.com/docs/en/about-claude/pricing, of 2026-11-10",
    ]
    assert vaala("run", "--model", "scripted", "hello").code == 0
    assert vaala("models", "show", "real/claude-haiku-5-5") == alone
    (info,) = vaala("models", "show", "team/m", "--json").lines
    assert info["facts"] == {"contextTokens": "config", "prices": "config"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("show",), 2, "name a model"),
        (("list", "x"), 2, "takes no 'x'"),
        (("show", "team/x"), 2, "did you mean team/m?"),
        (("show", "x/y"), 2, "no model is called 'x/y'"),
    ],
)
def test_what_cannot_be_done_is_told(
    vaala: Vaala, words: tuple[str, ...], code: int, said: str
) -> None:
    result = vaala("models", *words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err


def test_a_refresh_without_the_network_says_so(
    vaala: Vaala, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    result = vaala("models", "refresh")
    assert result.code == 4
    assert "openrouter" in result.err
