"""The command line, called in this process as the program calls it, with an own home."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from vaala.cli.program import main


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


@pytest.fixture
def vaala(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Vaala:
    def call(*words: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
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
