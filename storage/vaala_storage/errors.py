"""What can go wrong in a store, one class for each thing a caller can do about it.

StorageError
+-- Conflict          the stream is not where the caller thought: read again
+-- AlreadyExists     a path is created twice
+-- NotFound          no such path, stream or blob
+-- StorageFull       no space or quota; nothing was written, try again when there is
+-- StreamBroken      the device failed or went silent: recover the stream, then compare
+-- StorageCorrupt    the data cannot be read as ours; the text says where
+-- ReadOnly          the store was opened for reading, or is of a newer format
+-- TooLarge          one value is over the limit of what an entry may hold
+-- StorageFailed     any other error of the system below, named in the text
"""

from __future__ import annotations


class StorageError(Exception):
    """The root; the message names the path and what the system said."""


class Conflict(StorageError):
    """The stream's last sequence is not the expected one; nothing was written."""

    def __init__(self, path: str, stream: str, *, expected: int, last: int) -> None:
        super().__init__(f"{path}/{stream}: expected last sequence {expected}, it is {last}")
        self.expected = expected
        self.last = last


class AlreadyExists(StorageError):
    pass


class NotFound(StorageError):
    pass


class StorageFull(StorageError):
    pass


class StreamBroken(StorageError):
    pass


class StorageCorrupt(StorageError):
    pass


class ReadOnly(StorageError):
    pass


class TooLarge(StorageError):
    pass


class StorageFailed(StorageError):
    pass
