"""`Package`: the files of vaala that this process was started from, and what has become of them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from vaala import version
from vaala_protocol.errors import Refused

UPGRADED: Final = "vaala was upgraded: run `vaala restart`"
_VERSION = re.compile(r'^VERSION = "([^"]+)"', re.MULTILINE)


class Upgraded(Refused):
    """What was asked for needs a part that was not loaded before the upgrade."""


def _ignore() -> None:
    pass


class Package:
    """Modules are imported when they are first needed. An upgrade under a running process would
    make it a mix of two versions, so whoever imports late asks here before."""

    def __init__(self, version_file: Path | None = None) -> None:
        """``version_file`` says which version lies on the disk; None: that of this process."""
        self._file = version_file or Path(version.__file__)
        self._noticed = False
        self._tell: Callable[[], None] = _ignore

    @contextmanager
    def watch(self, tell: Callable[[], None]) -> Generator[None]:
        """Call ``tell`` when an upgrade is noticed, once, while the block runs."""
        self._tell = tell
        try:
            yield
        finally:
            self._tell = _ignore

    def look(self) -> bool:
        """Tell whether other files than those of this process lie there now. Reads a small file."""
        if not self._noticed and self._installed() != version.VERSION:
            self._noticed = True
            self._tell()
        return self._noticed

    def check(self, *modules: str) -> None:
        """Raise `Upgraded` when one of these modules would come from another version.

        Costs nothing once all of them are imported.
        """
        if any(module not in sys.modules for module in modules) and self.look():
            raise Upgraded(UPGRADED)

    def _installed(self) -> str | None:
        """Return the version that lies there; None: there is none, as in the midst of an upgrade.

        While the system does not let us look (too many open files, say) it counts as ours.
        """
        try:
            found = _VERSION.search(self._file.read_text("utf-8"))
        except (FileNotFoundError, NotADirectoryError, UnicodeError):
            return None
        except OSError:
            return version.VERSION
        return None if found is None else found[1]
