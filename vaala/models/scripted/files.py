"""`Scripts`: the scripts that stand in files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any

import trio

from vaala.models.limits import SCRIPT_BYTES_MAX, SCRIPT_THREADS_MAX, SCRIPTS_KEPT_MAX
from vaala.models.scripted.model import ScriptedModel
from vaala.named_file import open_regular
from vaala_protocol.errors import BadRequest


class Scripts:
    """Scripts of files; a file is read again when it has changed."""

    def __init__(self) -> None:
        self._threads = trio.CapacityLimiter(SCRIPT_THREADS_MAX)
        self._kept: dict[Path, _Script] = {}

    async def load(self, path: Path) -> ScriptedModel:
        """Return a new model of a YAML script; it is called ``scripted:PATH``.

        Raises `BadRequest` for a file that cannot be read, is no regular file, no YAML, or no
        script. Cancel: at once, whatever holds the file up.
        """
        script = await trio.to_thread.run_sync(
            _read, path, self._kept.get(path), abandon_on_cancel=True, limiter=self._threads
        )
        self._kept.pop(path, None)
        self._kept[path] = script
        if len(self._kept) > SCRIPTS_KEPT_MAX:
            del self._kept[next(iter(self._kept))]
        return ScriptedModel(script.data, name=f"scripted:{path}")


@dataclass(frozen=True)
class _Script:
    data: Any
    state: tuple[int, int, int, int]
    """Of the file: device, inode, size and time of change."""


def _read(path: Path, known: _Script | None) -> _Script:
    try:
        with BufferedReader(open_regular(path.expanduser())) as file:
            found = os.fstat(file.fileno())
            state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
            if known is not None and known.state == state:
                return known
            text = file.read(SCRIPT_BYTES_MAX + 1)
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: "~" of a user that is not there. ValueError: a NUL in the path.
        what = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BadRequest(f"the script {path} cannot be read: {what}") from error
    if len(text) > SCRIPT_BYTES_MAX:
        raise BadRequest(f"the script {path} is larger than {SCRIPT_BYTES_MAX} bytes")
    return _Script(_parse(text, path), state)


def _parse(text: bytes, path: Path) -> Any:
    # Here and not above: the reader costs time at start, and most starts have no script file.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text.decode("utf-8"))
    except (YAMLError, UnicodeDecodeError, RecursionError) as error:
        what = " ".join(str(error).split())
        raise BadRequest(f"the script {path} is no YAML: {what}") from error
