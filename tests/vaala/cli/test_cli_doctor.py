"""`vaala doctor`: what is wrong, one thing at a time, and what to do about it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.vaala.cli.processes import read_until, started
from vaala.cli.doctor import check_directory
from vaala.testing import chat_server

Script = Callable[[str], str]
Vaala = Callable[..., Any]

CHECKS = ["data directory", "index", "server", "configuration", "model"]


@pytest.fixture(autouse=True)
def models(isolated: Path) -> Path:
    """Choose a model that needs neither key nor server."""
    directory = isolated / ".config" / "vaala"
    directory.mkdir(parents=True)
    file = directory / "models.yaml"
    file.write_text("default: scripted\n")
    return file


def _wrong(vaala: Vaala, *words: str) -> dict[str, Any]:
    """Return what is wrong by name; the exit code has to say the same."""
    done = vaala("doctor", "--json", *words)
    wrong = {one["check"]: one for one in done.lines if not one["ok"]}
    assert done.code == (1 if wrong else 0)
    return wrong


def test_all_is_well_before_anything_was_done_and_nothing_is_made(
    vaala: Vaala, isolated: Path
) -> None:
    done = vaala("doctor")
    assert done.code == 0
    assert [line.partition("ok    ")[2].partition(":")[0] for line in done.out.splitlines()] == (
        CHECKS
    )
    assert not (isolated / ".local" / "share").exists()


def test_a_server_that_runs_is_named(vaala: Vaala) -> None:
    assert vaala("run", "hi").code == 0
    pid = vaala("status", "--json").lines[0]["server"]["pid"]
    assert f"process {pid}" in vaala("doctor").out
    assert _wrong(vaala) == {}


def test_a_configuration_that_cannot_be_loaded(vaala: Vaala, models: Path) -> None:
    models.write_text("default: [\n")
    wrong = _wrong(vaala)["configuration"]
    assert f"{models}:" in wrong["text"]
    assert "vaala config edit" in wrong["fix"]


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_a_data_directory_that_is_none(vaala: Vaala, place: str) -> None:
    Path("file").touch()
    wrong = _wrong(vaala, "--data-dir", place)["data directory"]
    assert wrong["text"].endswith("/file is no directory")
    assert "--data-dir" in wrong["fix"]


def test_a_disk_with_little_room(tmp_path: Path) -> None:
    assert check_directory(tmp_path, free_bytes_min=0).ok
    assert "MB left" in check_directory(tmp_path, free_bytes_min=2**62).text


def test_an_index_that_is_damaged(vaala: Vaala, isolated: Path) -> None:
    assert vaala("run", "--in-process", "hi").code == 0
    (isolated / ".local/share/vaala/metadata.db").write_bytes(b"no database " * 1000)
    assert "vaala reindex" in _wrong(vaala)["index"]["fix"]
    assert vaala("reindex").code == 0
    assert _wrong(vaala) == {}


def test_the_record_of_a_killed_server_is_harmless(vaala: Vaala) -> None:
    assert vaala("run", "hi").code == 0
    os.kill(vaala("status", "--json").lines[0]["server"]["pid"], signal.SIGKILL)
    assert _wrong(vaala) == {}
    assert "harmless" in vaala("doctor").out


@pytest.fixture
def stuck(vaala: Vaala) -> Iterator[int]:
    """Start a server and stop it where it is, as a debugger or a dead disk would."""
    assert vaala("run", "hi").code == 0
    pid: int = vaala("status", "--json").lines[0]["server"]["pid"]
    os.kill(pid, signal.SIGSTOP)
    yield pid
    os.kill(pid, signal.SIGCONT)


def test_a_server_that_does_not_answer_is_named_and_looking_goes_on(
    vaala: Vaala, stuck: int
) -> None:
    wrong = _wrong(vaala)["server"]
    assert f"process {stuck}" in wrong["text"]
    assert vaala("list").code == 0
    stopped = vaala("stop")
    assert (stopped.code, "see `vaala doctor`" in stopped.err) == (4, True)


def test_a_run_in_process_that_owns_the_data_is_named(vaala: Vaala, script: Script) -> None:
    model = script("  - say: Thinking.\n    hang: true\n")
    with started("run", "--in-process", "--model", model, "go") as run:
        assert run.stdout is not None
        read_until(run.stdout.fileno(), b"Thinking.")
        assert f"in use by process {run.pid}" in vaala("doctor").out
        assert _wrong(vaala) == {}


@pytest.fixture
def by_variable(models: Path) -> None:
    models.write_text("default: openai/m\n")


@pytest.mark.usefixtures("by_variable")
async def test_a_model_server_that_is_not_there(
    vaala: Vaala, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with chat_server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert await trio.to_thread.run_sync(_wrong, vaala) == {}
    wrong = await trio.to_thread.run_sync(_wrong, vaala)
    assert f"{server.base_url} cannot be reached" in wrong["model"]["text"]
    assert "OPENAI_BASE_URL" in wrong["model"]["fix"]
