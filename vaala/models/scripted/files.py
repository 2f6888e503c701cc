"""Reading a script from a file."""

from __future__ import annotations

from io import BufferedReader
from pathlib import Path
from typing import Any

import trio

from vaala.models.limits import SCRIPT_BYTES_MAX
from vaala.models.scripted.model import ScriptedModel
from vaala.named_file import open_regular
from vaala_protocol.errors import BadRequest


async def load_script(path: Path, limiter: trio.CapacityLimiter) -> ScriptedModel:
    """Read a script in a thread of ``limiter``; see `read_script`. Cancel: at once, whatever holds
    the file up."""
    return await trio.to_thread.run_sync(read_script, path, abandon_on_cancel=True, limiter=limiter)


def read_script(path: Path) -> ScriptedModel:
    """Read a YAML script; the model is called ``scripted:PATH``. Blocks for the file.

    Raises `BadRequest` for a file that cannot be read, is no regular file, no YAML, or no script.
    """
    try:
        with BufferedReader(open_regular(path.expanduser())) as file:
            text = file.read(SCRIPT_BYTES_MAX + 1)
    except (OSError, RuntimeError, ValueError) as error:
        # RuntimeError: "~" of a user that is not there. ValueError: a NUL in the path.
        what = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise BadRequest(f"the script {path} cannot be read: {what}") from error
    if len(text) > SCRIPT_BYTES_MAX:
        raise BadRequest(f"the script {path} is larger than {SCRIPT_BYTES_MAX} bytes")
    return ScriptedModel(_parse(text, path), name=f"scripted:{path}")


def _parse(text: bytes, path: Path) -> Any:
    # Here and not above: the reader costs time at start, and most starts have no script file.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text.decode("utf-8"))
    except (YAMLError, UnicodeDecodeError, RecursionError) as error:
        what = " ".join(str(error).split())
        raise BadRequest(f"the script {path} is no YAML: {what}") from error
