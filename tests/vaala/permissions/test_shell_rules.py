"""Rules for commands look at what a shell would run, and a shell is asked whether that holds."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.vaala.permissions.shell_strings import ALLOW, DENY, HARMLESS, HOSTILE
from vaala.permissions.base import Access, Allow, Decision, PermissionRequest
from vaala.permissions.policy import ModeGate
from vaala.permissions.rules import Rules, parse_rules
from vaala.permissions.shell import SimpleCommand, read_script
from vaala_protocol.calls import CommandDetails

BASH = shutil.which("bash") or ""
RULES = parse_rules(ALLOW, DENY)


async def decide(command: str, rules: Rules = RULES) -> Decision:
    access = Access("execute", command)
    details = CommandDetails(command=command, cwd=".")
    return await ModeGate(rules).decide(
        PermissionRequest("exec_command", access, details, "ask", "s")
    )


def test_there_are_enough_of_both() -> None:
    assert len({*HARMLESS, *HOSTILE}) == len(HARMLESS) + len(HOSTILE) >= 300
    assert min(len(HARMLESS), len(HOSTILE)) >= 150


@pytest.mark.parametrize("command", HOSTILE)
async def test_no_hostile_command_is_allowed(command: str) -> None:
    assert not isinstance(await decide(command), Allow)


async def test_most_harmless_commands_run_without_a_question() -> None:
    asked = [one for one in HARMLESS if not isinstance(await decide(one), Allow)]
    assert len(asked) <= len(HARMLESS) * 0.1, asked


# The oracle: bash runs what was read as sure, where no program exists but a function that notes
# with what it was called. Whatever it notes must be among the commands that were read.
NOTE = '() { printf "%s\\x1f" "$@" >> "$NOTES"; printf "\\x1e" >> "$NOTES"; }'
PIECES = st.sampled_from(
    [
        "ls", "git", "status", "-x", "--out=y", "a", "b c", " ", "  ", "\t", "\n", "'", '"', "\\",
        "$", "$A", "${A}", "$(a)", "`a`", ";", "&", "|", "&&", "||", "|&", ">", "<", ">/dev/null",
        "2>&1", "<<E", "<<<", "(", ")", "{", "}", "{a,b}", "[", "]", "*", "?", "~", "#", "!", "=",
        "A=1", "%", "^", ",", ":", "+", "@", "-", ".", "/", "1", "2", "'a b'", '"a b"', "\\ ",
        "\\;", "\\n", "\r", "\u00e9", "\u00a0", "\u2028", "if", "then", "fi", "time", "do",
        "done", "in", "for", "case", "esac", "[[", "]]", "$'a'", '$"a"', "$((1))", "true", ">&-",
        "&>", "\x0b", "\x0c",
    ]
)  # fmt: skip
SCRIPTS = st.lists(PIECES, min_size=1, max_size=12).map("".join)


def ran(text: str, place: Path) -> list[list[str]]:
    notes = place / "notes"
    notes.write_bytes(b"")
    environ = {
        "PATH": "", "NOTES": str(notes), "HOME": str(place), "A": "one -two", "LC_ALL": "C.UTF-8",
        "BASH_FUNC_command_not_found_handle%%": NOTE,
    }  # fmt: skip
    empty = place / "empty"
    empty.mkdir(exist_ok=True)
    subprocess.run(
        [BASH, "-c", text], cwd=empty, env=environ, timeout=10, check=False,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert os.listdir(empty) == []
    calls = os.fsdecode(notes.read_bytes()).split("\x1e")
    return [call.split("\x1f")[:-1] for call in calls if call]


def covers(command: SimpleCommand, words: list[str]) -> bool:
    """Whether words are what a command was read as; a word not known may be any number of them."""
    texts = command.texts
    if None not in texts:
        return list(texts) == words
    known = texts[: texts.index(None)]
    return list(known) == words[: len(known)]


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(SCRIPTS)
def test_the_shell_runs_nothing_but_what_was_read(tmp_path: Path, text: str) -> None:
    script = read_script(text)
    if not script.sure:
        return
    for words in ran(text, tmp_path):
        assert any(covers(command, words) for command in script.commands), words


@pytest.mark.parametrize("text", [one for one in HARMLESS if "/dev/" not in one])
def test_the_shell_runs_harmless_ones_as_they_were_read(text: str, tmp_path: Path) -> None:
    script = read_script(text)
    noted = ran(text, tmp_path)
    assert all(any(covers(one, words) for one in script.commands) for words in noted)
