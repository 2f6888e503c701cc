"""The program around the commands: help, version, unknown words, bugs, what start-up imports."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vaala.cli.commands import COMMANDS
from vaala.cli.failures import run_program
from vaala.version import VERSION
from vaala_protocol.errors import Busy
from vaala_storage.errors import StorageFull

Vaala = Callable[..., Any]


def test_version(vaala: Vaala) -> None:
    for option in ("--version", "-V"):
        done = vaala(option)
        assert (done.code, done.out) == (0, f"vaala {VERSION}\n")


def test_help_names_every_command(vaala: Vaala) -> None:
    width = max(len(command.name) for command in COMMANDS)
    for words in (["--help"], ["-h"], ["help"]):
        done = vaala(*words)
        assert done.code == 0
        for command in COMMANDS:
            assert f"  {command.name:{width}}  {command.summary}\n" in done.out


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_help_of_a_command_names_every_option(vaala: Vaala, command: Any) -> None:
    for words in ([command.name, "--help"], ["help", command.name]):
        done = vaala(*words)
        assert done.code == 0
        assert command.summary[1:] in done.out
        for option in command.options:
            assert option.name in done.out


def test_the_name_alone_says_what_to_do_next(vaala: Vaala) -> None:
    done = vaala()
    assert (done.code, done.out) == (2, "")
    assert "vaala run" in done.err


def test_the_name_alone_on_a_terminal() -> None:
    master, slave = pty.openpty()
    result = subprocess.run(
        [sys.executable, "-m", "vaala"], stdin=slave, stdout=slave, stderr=slave, check=False
    )
    os.close(slave)
    assert result.returncode == 0
    assert b"vaala run" in os.read(master, 4096)
    os.close(master)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["lst"], "unknown command 'lst' (did you mean list?); see `vaala --help`"),
        (["what is this"], 'a prompt needs a command: vaala run "what is this"'),
        (["zzz"], "unknown command 'zzz'; see `vaala --help`"),
        (["--verbose"], "unknown command '--verbose'"),
        (["show"], "the following arguments are required: ID; see `vaala show --help`"),
        (["list", "x"], "one word too many: 'x'; see `vaala list --help`"),
        (["list", "--jsn"], "unknown option --jsn (did you mean --json?)"),
        (["completion", "csh"], "invalid choice: 'csh'"),
    ],
)
def test_wrong_words_get_one_line(vaala: Vaala, words: list[str], complaint: str) -> None:
    done = vaala(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("vaala: ")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def _imported(*words: str) -> set[str]:
    """Return the modules that a command imports."""
    code = (
        "import sys\n"
        "from vaala.cli.program import main\n"
        "main(sys.argv[1:])\n"
        "print(*sys.modules, file=sys.stderr)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=True
    )
    return set(result.stderr.split())


HEAVY = {"trio", "pydantic", "msgspec", "httpx", "apsw", "ruamel", "ruamel.yaml", "asyncio", "ssl"}


@pytest.mark.parametrize(
    "words", [["--version"], ["--help"], ["run", "--help"], ["completion", "bash"]]
)
def test_help_version_and_completion_import_nothing_heavy(words: list[str]) -> None:  # J5-1
    assert _imported(*words) & HEAVY == set()


def test_help_and_version_do_without_argparse() -> None:
    for words in (["--version"], ["--help"]):
        assert "argparse" not in _imported(*words)


def test_reading_commands_import_no_runtime_and_no_network(tmp_path: Path) -> None:
    imported = _imported("list", "--data-dir", str(tmp_path / "none"))
    assert imported & {"httpx", "pydantic", "ruamel", "vaala.runtime"} == set()


def test_a_scripted_run_imports_no_network_client() -> None:
    imported = _imported("run", "--in-process", "--model", "scripted", "hi")
    assert imported & {"httpx", "ruamel", "argcomplete", "rich"} == set()


async def _bug() -> int:
    raise RuntimeError("an unforeseen thing")


def test_a_bug_is_one_line_and_a_traceback_in_the_log(
    capsys: pytest.CaptureFixture[str], isolated: Path
) -> None:
    log = isolated / ".local/state/vaala/vaala.log"
    assert run_program(_bug) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("vaala: bug: the command failed: RuntimeError('an unforeseen thing')")
    assert shown.endswith(f"see {log}\n")
    assert "Traceback" in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_a_bug_without_a_log_shows_its_traceback(
    capsys: pytest.CaptureFixture[str], isolated: Path
) -> None:
    (isolated / ".local").write_text("in the way")
    assert run_program(_bug) == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize(("error", "code"), [(Busy("it runs"), 1), (StorageFull("no space"), 4)])
def test_known_errors_have_their_exit_code(error: Exception, code: int) -> None:
    from vaala.cli.exits import CommandFailed

    async def fail() -> int:
        raise ExceptionGroup("of a nursery", [error])

    with pytest.raises(CommandFailed) as caught:
        run_program(fail)
    assert caught.value.code == code
    assert str(error) in caught.value.message
