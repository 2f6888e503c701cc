"""`vaala run --effort` and `--option`: what reaches the model, and what is refused at once."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vaala.cli.commands import EFFORTS
from vaala.cli.model_options import read_options
from vaala_protocol.settings import EFFORTS as KNOWN

Script = Callable[[str], str]
Vaala = Callable[..., Any]


def test_values_are_json_and_bare_words() -> None:
    words = [
        "temperature=0.2",
        'stop=["a"]',
        "service_tier=flex",
        "seed=null",
    ]
    assert read_options(words) == {
        "temperature": 0.2,
        "stop": ["a"],
        "service_tier": "flex",
        "seed": None,
    }


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("temperature", "write NAME=VALUE, as in temperature=0.2"),
        ("=1", "write NAME=VALUE"),
        ("stop=[1", "the value is no JSON: Expecting ',' delimiter"),
        ("a=", "the value is no JSON"),
        ("tools=[]", "the option tools is a part of the request that vaala makes itself"),
        ("max_output_tokens=0.5", "a whole number of tokens from 1 on, not 0.5"),
    ],
)
def test_an_option_that_is_wrong(vaala: Vaala, word: str, words: str) -> None:
    done = vaala("run", "--model", "scripted", "--option", word, "x")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"vaala: --option {word}: ")
    assert words in done.err


@pytest.mark.usefixtures("way")
def test_they_are_the_settings_of_the_turn(vaala: Vaala, script: Script) -> None:
    model = script("  - say: one\n  - say: two\n")
    first = ("--effort", "high", "--option", "temperature=0.2", "--option", "seed=1")
    vaala("run", "--model", model, *first, "x")
    done = vaala("run", "--continue", "--json", "--option", "seed=2", "y")
    (result,) = (line["result"] for line in done.lines if "result" in line)
    settings = result["turn"]["settings"]
    assert settings["effort"] == "high"
    assert settings["options"] == {"temperature": 0.2, "seed": 2}


def test_the_efforts_are_those_of_the_protocol() -> None:
    assert EFFORTS == KNOWN


def test_a_provider_that_is_configured_wrong_is_told_with_its_line(vaala: Vaala) -> None:
    configuration = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    configuration.mkdir(parents=True)
    text = "mine:\n  base_url: http://127.0.0.1:1\n  options: {messages: []}\n"
    (configuration / "providers.yaml").write_text(text)
    done = vaala("config", "check")
    assert done.code == 2
    assert "providers.yaml:3: mine.options.messages: the option messages" in done.out + done.err
