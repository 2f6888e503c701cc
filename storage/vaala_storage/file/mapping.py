"""The one place where errors of the operating system become errors of storage."""

from __future__ import annotations

import errno

from vaala_storage.errors import (
    AlreadyExists,
    NotFound,
    ReadOnly,
    StorageError,
    StorageFailed,
    StorageFull,
)

_KINDS: dict[int | None, type[StorageError]] = {
    errno.ENOSPC: StorageFull,
    errno.EDQUOT: StorageFull,
    errno.EFBIG: StorageFull,
    errno.EROFS: ReadOnly,
    errno.ENOENT: NotFound,
    errno.ENOTDIR: NotFound,
    errno.EEXIST: AlreadyExists,
    errno.ENOTEMPTY: AlreadyExists,
}


def storage_error(error: OSError, what: str) -> StorageError:
    """Return the error of storage for ``error``; ``what`` names the path or stream."""
    kind = _KINDS.get(error.errno, StorageFailed)
    return kind(f"{what}: {error.strerror or error}")
