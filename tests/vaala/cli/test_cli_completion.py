"""Completion scripts: bash runs for real; the others name all there is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vaala.cli.commands import COMMANDS
from vaala.cli.completion import bash, fish, zsh


def _complete(*words: str) -> list[str]:
    """Return what bash offers for the last word."""
    quoted = " ".join(f"'{word}'" for word in words)
    script = f"""{bash()}
COMP_WORDS=({quoted})
COMP_CWORD={len(words) - 1}
_vaala
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    result = subprocess.run(["bash"], input=script, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    return list(filter(None, result.stdout.splitlines()))


def test_commands() -> None:
    assert _complete("vaala", "rei") == ["reindex"]
    assert set(_complete("vaala", "")) >= {command.name for command in COMMANDS}


def test_options_and_their_values() -> None:
    assert _complete("vaala", "run", "--mo") == ["--model", "--mode"]
    assert _complete("vaala", "run", "--mode", "a") == ["ask", "auto-edit"]
    assert _complete("vaala", "list", "--li") == ["--limit"]
    assert _complete("vaala", "completion", "f") == ["fish"]


def test_an_option_that_takes_free_text_offers_nothing() -> None:
    assert _complete("vaala", "run", "--model", "") == []


def test_files_and_directories(isolated: object) -> None:
    subprocess.run(["mkdir", "folder"], check=True)
    subprocess.run(["touch", "file"], check=True)
    assert _complete("vaala", "run", "--cwd", "f") == ["folder"]
    assert sorted(_complete("vaala", "import", "f")) == ["file", "folder"]


def test_names_with_spaces(isolated: object) -> None:
    subprocess.run(["mkdir", "my folder"], check=True)
    assert _complete("vaala", "run", "--cwd", "m") == ["my folder"]


def test_a_value_behind_an_equals_sign_and_the_command_help() -> None:
    assert _complete("vaala", "run", "--mode", "=", "a") == ["ask", "auto-edit"]
    assert len(_complete("vaala", "run", "--mode", "=")) == 4
    assert _complete("vaala", "help", "ru") == ["run"]
    assert "help" in _complete("vaala", "he")


def test_ids_and_agents(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    subprocess.run(["vaala", "run", "-m", "scripted", "x"], check=True, capture_output=True)
    conversations = isolated / ".local/share/vaala/conversations"
    (found,) = (one for one in conversations.iterdir() if not one.name.startswith("."))
    for words in (["show", ""], ["run", "--conversation", "0"]):
        (shown,) = [word for word in _complete("vaala", *words) if not word.startswith("-")]
        assert found.name.startswith(shown)
        assert len(shown) >= 13
    (isolated / ".config/vaala").mkdir(parents=True)
    (isolated / ".config/vaala/agents.yaml").write_text("reviewer:\n  mode: ask\n")
    assert _complete("vaala", "run", "--agent", "") == ["default", "reviewer"]


@pytest.mark.parametrize("make", [bash, zsh, fish])
def test_every_command_and_option_is_in_each_script(make: object) -> None:
    assert callable(make)
    text = make()
    for command in COMMANDS:
        assert command.name in text
        for option in command.options:
            assert option.name.removeprefix("--") in text
