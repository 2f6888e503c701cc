"""What can be wrong with a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct


class Problem(Struct, frozen=True):
    """One thing to mend. ``line`` counts from 1; None: the file as a whole."""

    file: Path
    line: int | None
    key: str
    """The way to the value, "openrouter.base_url"; empty for the file as a whole."""
    text: str
    """What was found and what is expected."""

    def __str__(self) -> str:
        place = str(self.file) if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}: {self.text}" if self.key else f"{place}: {self.text}"


class ConfigError(Exception):
    """The configuration was not loaded; ``problems`` names everything that is wrong with it."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)
