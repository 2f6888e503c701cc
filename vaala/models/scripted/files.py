"""Reading a script from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vaala.models.limits import SCRIPT_BYTES_MAX
from vaala.models.scripted.model import ScriptedModel
from vaala_protocol.errors import BadRequest


def read_script(path: Path) -> ScriptedModel:
    """Read a YAML script; the model is called ``scripted:PATH``. Blocks for the file.

    Raises `BadRequest` for a file that cannot be read, is no YAML, or is no script.
    """
    try:
        with path.expanduser().open("rb") as file:
            text = file.read(SCRIPT_BYTES_MAX + 1)
    except (OSError, RuntimeError) as error:
        # RuntimeError: "~" of a user that is not there.
        what = error.strerror if isinstance(error, OSError) else str(error)
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
