"""Where a key can be besides the configuration and the environment."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from msgspec import Struct


class NoKey(Exception):
    """A source gave no key. The text names it, says why, and has no key in it."""


class KeyFile(Struct, frozen=True):
    """A file whose only line is the key."""

    path: Path

    def __str__(self) -> str:
        return f"the file {self.path}"


class KeyCommand(Struct, frozen=True):
    """A command that prints the key on its first line; it runs without a shell."""

    argv: tuple[str, ...]
    withheld: tuple[str, ...] = ()
    """Variables that it does not inherit: other keys."""

    def __str__(self) -> str:
        return f"the command {self.argv[0]}"


class KeyringEntry(Struct, frozen=True):
    """A password in the keyring of the system."""

    service: str
    user: str

    def __str__(self) -> str:
        return f"the keyring ({self.service}/{self.user})"


KeySource: TypeAlias = KeyFile | KeyCommand | KeyringEntry
