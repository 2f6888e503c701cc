"""Where the record of a server lies, and what stands beside it.

For the data directory of the user they are in the state directory, so that they are not copied
with the data; for any other one in that directory itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from vaala.paths import data_directory as data_directory_of
from vaala.paths import state_directory


class Place(Struct, frozen=True):
    """The files of the server of one data directory."""

    data: Path
    directory: Path

    @property
    def record(self) -> Path:
        return self.directory / "runtime-server.yaml"

    @property
    def start_lock(self) -> Path:
        """Held by the client that starts the server, so that ten at once start one."""
        return self.directory / "runtime-server.start"

    @property
    def output(self) -> Path:
        """What a server started by a client prints: a traceback before its log is open."""
        return self.directory / "runtime-server.out"


def place_of(data: Path, environ: Mapping[str, str]) -> Place:
    """Return the place for a data directory; ``environ`` tells which one is the user's."""
    usual = {name: value for name, value in environ.items() if name != "VAALA_DATA_DIR"}
    if same_directory(data, data_directory_of(usual)):
        return Place(data, state_directory(environ))
    return Place(data, data)


def same_directory(one: Path, other: Path) -> bool:
    """Tell whether two paths lead to the same directory, which need not exist."""
    return one == other or one.resolve() == other.resolve()
