"""Replacing a file whole: readers and crashes see the old content or the new, nothing between.

The new content goes to a hidden file in the same directory, is synced, and takes the name by
rename. Mode, owner, group and extended attributes (ACLs among them) are those of the old file;
where they cannot be kept the write is refused rather than done half, but for attributes that only
the system gives. After ``kill -9`` a hidden ``.vaala-*.tmp`` may remain.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from vaala_executors.errors import FileDenied
from vaala_executors.limits import IO_BYTES
from vaala_executors.local.files import file_stat, require_file
from vaala_executors.local.problems import naming
from vaala_executors.local.resolver import parent_of, sync_directory
from vaala_executors.workspace import FileStat, Place

TEMPORARY_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
F_FULLFSYNC = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS: its fsync leaves data in the drive's cache."""


def replace_file(place: Place, data: bytes, check_cancelled: Callable[[], None]) -> FileStat:
    """Replace or create a file. Blocks: for a thread; ``check_cancelled`` may raise.

    On return content and name are durable. On any error the old content is in place.
    """
    with naming(place.path), parent_of(place, create=True) as (handle, name):
        old = _old_file(place.path, handle, name)
        temporary = f".vaala-{os.urandom(8).hex()}.tmp"
        # A new file gets what the umask leaves; one that exists is closed until its mode is set.
        mode = 0o666 if old is None else 0o600
        descriptor = os.open(temporary, TEMPORARY_FLAGS, mode, dir_fd=handle)
        try:
            try:
                _write(descriptor, data, check_cancelled)
                if old is not None:
                    _keep_attributes(place.path, old, descriptor, handle, name)
                _sync(descriptor)
                check_cancelled()
                os.rename(temporary, name, src_dir_fd=handle, dst_dir_fd=handle)
            except BaseException:
                with suppress(FileNotFoundError):
                    os.unlink(temporary, dir_fd=handle)
                raise
            sync_directory(handle)
            return file_stat(os.fstat(descriptor))
        finally:
            os.close(descriptor)


def _old_file(path: str, handle: int, name: str) -> os.stat_result | None:
    try:
        old = os.stat(name, dir_fd=handle, follow_symlinks=False)
    except FileNotFoundError:
        return None
    require_file(path, old)
    # Rename asks only the directory, so the file's own protection is looked at here.
    if not os.access(name, os.W_OK, dir_fd=handle, effective_ids=True):
        raise FileDenied(f"{path!r} is write-protected (mode {stat.S_IMODE(old.st_mode):04o})")
    return old


def _write(descriptor: int, data: bytes, check_cancelled: Callable[[], None]) -> None:
    view = memoryview(data)
    while view:
        check_cancelled()
        view = view[os.write(descriptor, view[:IO_BYTES]) :]


def _keep_attributes(
    path: str, old: os.stat_result, descriptor: int, handle: int, name: str
) -> None:
    new = os.fstat(descriptor)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            raise FileDenied(
                f"{path!r} belongs to user {old.st_uid}, group {old.st_gid}, and replacing it "
                "would change that: write to it with a command, or remove it first"
            ) from None
    os.fchmod(descriptor, stat.S_IMODE(old.st_mode))
    if hasattr(os, "listxattr"):
        _copy_attributes(descriptor, handle, name)


def _copy_attributes(descriptor: int, handle: int, name: str) -> None:
    try:
        source = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=handle)
    except PermissionError:
        return  # a file that we may write and not read
    try:
        for attribute in _attributes(source):
            try:
                os.setxattr(descriptor, attribute, os.getxattr(source, attribute))
            except OSError as error:
                # Some are the system's to give (security.*), and one may be gone meanwhile.
                if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.ENODATA, errno.EINVAL):
                    raise
    finally:
        os.close(source)


def _attributes(descriptor: int) -> list[str]:
    try:
        return os.listxattr(descriptor)
    except OSError as error:
        if error.errno != errno.ENOTSUP:  # not every file system has them
            raise
        return []


def _sync(descriptor: int) -> None:
    if F_FULLFSYNC is not None:
        fcntl.fcntl(descriptor, F_FULLFSYNC)
    else:
        os.fsync(descriptor)
