"""The one place where errors of SQLite become ours."""

from __future__ import annotations

import errno
from pathlib import Path

import apsw

from vaala_storage.errors import (
    ReadOnly,
    StorageCorrupt,
    StorageError,
    StorageFailed,
    StorageFull,
    StreamBroken,
    TooLarge,
)

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def translate(error: apsw.Error, path: Path, *, writing: bool, errno_below: int) -> StorageError:
    """Return our error for one of SQLite, ``errno_below`` being what the system said last."""
    what = f"{path}: {type(error).__name__}: {error}"
    match error:
        case apsw.FullError():
            return StorageFull(what)
        case apsw.IOError() if errno_below in _NO_SPACE:
            return StorageFull(what)
        case apsw.IOError() if writing:
            return StreamBroken(f"{what}; whether it was written is not known")
        case apsw.CorruptError() | apsw.NotADBError() | apsw.FormatError():
            return StorageCorrupt(what)
        case apsw.ReadOnlyError():
            return ReadOnly(what)
        case apsw.TooBigError():
            return TooLarge(what)
        case apsw.BusyError() | apsw.LockedError():
            return StorageFailed(f"{what}; another process holds the database, try again")
        case _:
            return StorageFailed(what)
