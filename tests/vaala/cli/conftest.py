"""The command line, called in this process as the program calls it, with an own home."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vaala.cli.program import main
from vaala.discovery import ServerRecord, place_of, read_record
from vaala.paths import data_directory


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        """stdout as JSON lines; an error when a line is none."""
        return [json.loads(line) for line in self.out.splitlines()]


Vaala = Callable[..., Result]


@pytest.fixture(autouse=True)
def stopped(isolated: Path) -> Iterator[None]:
    """End the server of the usual data that a test has started, when it is over."""
    yield
    place = place_of(data_directory(os.environ), os.environ)
    record = read_record(place.record, place.data)
    if isinstance(record, ServerRecord):
        with suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        with place.owner_lock.open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)  # waits until the server has let go


@pytest.fixture(params=["server", "in-process"])
def way(request: pytest.FixtureRequest) -> str:
    """Where `vaala run` runs its agents; a test may choose one by parametrizing this."""
    return str(request.param)


@pytest.fixture
def vaala(
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> Vaala:
    """Call the program; in tests that use `way`, `run` goes that way."""
    in_process = "way" in request.fixturenames and request.getfixturevalue("way") == "in-process"

    def call(*words: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        if in_process and words[:1] == ("run",):
            words = ("run", "--in-process", *words[1:])
        code = main(words)
        captured = capfd.readouterr()
        return Result(code, captured.out, captured.err)

    return call


@pytest.fixture
def script(tmp_path: Path) -> Callable[[str], str]:
    """Write the steps of a script and return the name of the model that plays it."""

    def write(steps: str) -> str:
        file = tmp_path / f"script-{len(list(tmp_path.iterdir()))}.yaml"
        file.write_text(f"steps:\n{steps}")
        return f"scripted:{file}"

    return write
