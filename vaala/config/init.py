"""Writes the first configuration. What is there stays as it is."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

from vaala.config.config import default_instructions
from vaala.config.json_schema import json_schema, schema_name
from vaala.config.load import FILES
from vaala.config.replace_file import PRIVATE, locked

_STARTER = Path(__file__).with_name("starter")
INSTRUCTIONS_FILE = "default.md"


def write_starter(directory: Path) -> Iterator[tuple[Path, bool]]:
    """Write the files that are missing; yield each file, and whether it was written.

    The schemas for editors are made anew. Blocks. Raises `ConfigError` when the directory cannot
    be used, OSError when a file cannot be written.
    """
    with locked(directory):
        for name in FILES:
            written = _create(directory / name, starter(name))
            yield directory / name, written
            if written and name == "agents.yaml":
                instructions = directory / INSTRUCTIONS_FILE
                yield instructions, _create(instructions, f"{default_instructions()}\n".encode())
        for name in FILES:
            file = directory / schema_name(name)
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(json_schema(name), indent=1) + "\n", "utf-8")


def starter(name: str) -> bytes:
    """Return what a file begins with."""
    return (_STARTER / name).read_bytes()


def _create(file: Path, content: bytes) -> bool:
    """Write a new file, whole or not at all; False when there is one, or a link to none."""
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE)
    except FileExistsError:
        return False
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
    except BaseException:
        file.unlink()
        raise
    return True
