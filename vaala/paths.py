"""Where vaala keeps its things: the directories of the XDG base directory specification.

The same on every system, macOS included, so that one text of documentation is true. Each raises
`NoHome` where nothing says where the user's directories are.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


class NoHome(Exception):
    """The environment names no home directory, and the system knows none for this user."""


def config_directory(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_CONFIG_HOME", ".config") / "vaala"


def data_directory(environ: Mapping[str, str]) -> Path:
    """Return the data directory: ``VAALA_DATA_DIR``, else the one of the user."""
    if own := environ.get("VAALA_DATA_DIR"):
        return Path(own).expanduser().absolute()
    return _base(environ, "XDG_DATA_HOME", ".local/share") / "vaala"


def state_directory(environ: Mapping[str, str]) -> Path:
    return _base(environ, "XDG_STATE_HOME", ".local/state") / "vaala"


def _base(environ: Mapping[str, str], name: str, fallback: str) -> Path:
    # A relative path in these variables is to be ignored: XDG base directory specification 0.8.
    given = environ.get(name, "")
    if given and Path(given).is_absolute():
        return Path(given)
    home = environ.get("HOME", "")
    try:
        return (Path(home) if home else Path.home()) / fallback
    except RuntimeError as error:
        raise NoHome(f"there is no home directory: set HOME, or {name}") from error
