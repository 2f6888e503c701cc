"""Directories that cannot be used, over the server and without: one line, and the way out."""

from __future__ import annotations

import os
import pwd
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.cli.processes import PATIENCE_S, PROGRAM

Script = Callable[[str], str]
Vaala = Callable[..., Any]
RUN = ["run", "-m", "scripted", "hi"]


@pytest.mark.parametrize("home", ["file", "file/below", "/proc/nobody"])
def test_a_home_that_cannot_be_used(home: str) -> None:
    """A process of its own: its log is below that home, too."""
    Path("file").touch()
    bare = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    for words in (RUN, ["restart"]):
        done = subprocess.run(
            [*PROGRAM, *words], env={**bare, "HOME": str(Path(home).absolute())},
            capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
        )  # fmt: skip
        state = Path(home).absolute() / ".local/state/vaala"
        told = done.stderr.decode()
        assert (done.returncode, done.stdout, told.count("\n")) == (4, b"", 1)
        assert told.startswith(f"vaala: the state directory {state} cannot be used: ")
        assert told.endswith("choose another with XDG_STATE_HOME\n")


def _nobody(uid: int) -> object:
    raise KeyError(f"getpwuid(): uid not found: {uid}")


@pytest.mark.parametrize("words", [RUN, ["list"], ["status"], ["doctor"], ["init"], ["serve"]])
def test_a_user_without_a_home(
    vaala: Vaala, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(pwd, "getpwuid", _nobody)  # no user of this machine is without one
        for name in ("HOME", *(name for name in os.environ if name.startswith("XDG_"))):
            patch.delenv(name, raising=False)
        done = vaala(*words)
    assert (done.code, done.out, done.err.count("\n")) == (4, "", 1)
    assert done.err.startswith("vaala: there is no home directory: set HOME, or XDG_")


@pytest.mark.parametrize("words", [RUN, ["run", "--in-process", "-m", "scripted", "hi"]])
def test_a_disk_that_takes_nothing_more(isolated: Path, words: list[str]) -> None:
    """No file may grow here, which is how a limit of the shell is like a full disk."""
    done = subprocess.run(
        ["sh", "-c", f"trap '' XFSZ; ulimit -f 0; exec {' '.join([*PROGRAM, *words])}"],
        capture_output=True, check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
    )  # fmt: skip
    told = done.stderr.decode()
    assert (done.returncode, done.stdout, told.count("\n")) == (4, b"", 1)
    assert f"the data directory {isolated}/.local/share/vaala cannot be used" in told
    assert not (isolated / ".local/state/vaala/runtime-server.yaml").exists()


def test_a_data_directory_of_nobody(vaala: Vaala) -> None:
    done = vaala("list", "--data-dir", "~nobody-is-called-so/d")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--data-dir ~nobody-is-called-so/d: " in done.err
