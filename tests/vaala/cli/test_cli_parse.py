"""From words to arguments: what stands behind ``--`` is never an option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from vaala.cli.commands import COMMANDS, Argument, Command, find
from vaala.cli.exits import CommandFailed
from vaala.cli.parse import parse

Vaala = Callable[..., Any]


def _parsed(name: str, *words: str) -> dict[str, Any]:
    command = find(name)
    assert command is not None
    return vars(parse(command, words))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_nothing_behind_two_dashes_is_an_option(command: Command) -> None:
    open_ended = command._replace(arguments=(Argument("WORDS", "", many="any"),))
    words = [
        f"{option.name}={(option.choices or ('x',))[-1]}" if option.metavar else option.name
        for option in command.options
    ]
    parsed = vars(parse(open_ended, ["--", *words, "--", "-x", "--help"]))
    assert parsed.pop("words") == [*words, "--", "-x", "--help"]
    assert not any(parsed.values())


def test_a_mode_behind_two_dashes_is_part_of_the_prompt() -> None:
    parsed = _parsed("run", "--mode=ask", "say", "--", "--mode=full", "do it")
    assert (parsed["mode"], parsed["prompt"]) == ("ask", ["say", "--mode=full", "do it"])


@pytest.mark.parametrize("name", ["run", "search", "show"])
def test_a_word_with_a_dash_is_taken_behind_two_dashes(name: str) -> None:
    assert "-x" in next(word for word in _parsed(name, "--", "-x").values() if word)


def test_options_stand_anywhere_before_and_words_keep_their_order() -> None:
    parsed = _parsed("run", "one", "--json", "two", "-m", "scripted", "-", "-5", "- a b", "three")
    assert parsed["prompt"] == ["one", "two", "-", "-5", "- a b", "three"]
    assert (parsed["json"], parsed["model"]) == (True, "scripted")


@pytest.mark.parametrize("words", [["x", "-y"], ["-y", "x"], ["--mode", "--", "full"]])
def test_what_is_no_option_before_is_refused(words: list[str]) -> None:
    with pytest.raises(CommandFailed):
        _parsed("run", *words)


def test_a_prompt_behind_two_dashes_grants_nothing(
    vaala: Vaala, script: Callable[[str], str]
) -> None:
    model = script("  - call: {tool: exec_command, arguments: {command: touch made}}\n")
    assert vaala("run", "--model", model, "--", "--mode=full", "do it").code == 3
