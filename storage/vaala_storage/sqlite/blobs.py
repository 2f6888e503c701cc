"""`BlobStorage` in SQLite: a blob is kept in parts, and may have names in several paths."""

from __future__ import annotations

import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import apsw
import trio

from vaala_storage.blob_rules import WriterState, check_range
from vaala_storage.blobs import BlobStorage, BlobWriter
from vaala_storage.errors import AlreadyExists, NotFound, StorageError
from vaala_storage.names import check_name, check_path
from vaala_storage.sqlite.access import Access
from vaala_storage.sqlite.limits import BLOB_KEYS_PAGE, BLOB_PART_BYTES
from vaala_storage.sqlite.rows import first, select, select_all


class SqliteBlobs(BlobStorage):
    """Reads cost the range; `link` copies nothing."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def put(self, path: str, key: str, data: bytes) -> None:
        async with self.writer(path, key) as writer:
            await writer.write(data)
            await writer.commit()

    @asynccontextmanager
    async def writer(self, path: str, key: str) -> AsyncGenerator[BlobWriter]:
        _check(path, key)
        writer = SqliteBlobWriter(self._access, path, key)
        try:
            yield writer
        finally:
            await writer.discard()

    async def get(
        self, path: str, key: str, *, offset: int = 0, length: int | None = None
    ) -> bytes:
        _check(path, key)
        check_range(offset, length)

        def work(connection: apsw.Connection) -> bytes:
            blob, size = _find(connection, path, key)
            end = size if length is None else min(size, offset + length)
            return _read(connection, blob, offset, end)

        return await self._access.read(work)

    async def size(self, path: str, key: str) -> int:
        _check(path, key)
        return await self._access.read(lambda connection: _find(connection, path, key)[1])

    async def keys(self, path: str) -> AsyncIterator[str]:
        check_path(path)
        last = ""
        while True:
            keys = await self._access.read(partial(_keys_after, path, last))
            for key in keys:
                yield key
            if len(keys) < BLOB_KEYS_PAGE:
                return
            last = keys[-1]

    async def link(self, source: str, target: str) -> None:
        check_path(source)
        check_path(target)
        await self._access.write(partial(_link, source, target))

    async def delete_path(self, path: str) -> None:
        check_path(path)
        await self._access.write(lambda connection: remove_names(connection, path))


class SqliteBlobWriter(BlobWriter):
    """Made by `SqliteBlobs.writer`; what it stores belongs to no name until `commit`."""

    def __init__(self, access: Access, path: str, key: str) -> None:
        self._access = access
        self._path = path
        self._key = key
        # Chosen here, so that it is known even when the first write is cancelled half way.
        self._blob = secrets.randbits(62)
        self._buffer = bytearray()
        self._stored = 0
        self._state = WriterState(f"{path}/{key}")

    async def write(self, data: bytes) -> None:
        with self._state.writing():
            self._buffer += data
            if len(self._buffer) >= BLOB_PART_BYTES:
                await self._store(lambda _: None)

    async def commit(self) -> None:
        with self._state.committing():
            await self._store(partial(_name_new, self._path, self._key, self._blob))

    async def discard(self) -> None:
        """Remove what was stored without a commit; called at the end, cancelled or not."""
        if not self._state.committed:
            with trio.CancelScope(shield=True), suppress(StorageError):
                # What cannot be removed now is removed when the database is opened next.
                await self._access.write(partial(_discard, self._blob))

    async def _store(self, after: Callable[[apsw.Connection], None]) -> None:
        """Store what was gathered and do ``after`` in the same commit."""
        blob, start, data = self._blob, self._stored, bytes(self._buffer)

        def work(connection: apsw.Connection) -> None:
            _append(connection, blob, start, data)
            after(connection)

        await self._access.write(work)
        self._stored += len(data)
        self._buffer.clear()


def has_unnamed(connection: apsw.Connection) -> bool:
    """Whether a writer that is at work, or that a crash ended, has stored parts."""
    return first(connection, "SELECT 1 FROM blobs WHERE names = 0 LIMIT 1") is not None


def sweep(connection: apsw.Connection) -> None:
    """Remove what writers left that a crash ended."""
    connection.execute(
        "DELETE FROM blob_parts WHERE blob IN (SELECT id FROM blobs WHERE names = 0)"
    )
    connection.execute("DELETE FROM blobs WHERE names = 0")


def remove_names(connection: apsw.Connection, path: str) -> None:
    """Remove every blob of a path; the bytes go with the last name."""
    connection.execute(
        "UPDATE blobs SET names = names - 1 WHERE id IN "
        "(SELECT blob FROM blob_names WHERE path = ?)",
        (path,),
    )
    removed = "DELETE FROM blob_names WHERE path = ? RETURNING blob"
    for (blob,) in select_all(connection, removed, (path,)):
        _discard(blob, connection)


def _check(path: str, key: str) -> None:
    check_path(path)
    check_name(key)


def _append(connection: apsw.Connection, blob: int, start: int, data: bytes) -> None:
    connection.execute(
        "INSERT INTO blobs (id, size, names) VALUES (?1, ?2, 0) "
        "ON CONFLICT (id) DO UPDATE SET size = size + ?2",
        (blob, len(data)),
    )
    connection.executemany(
        "INSERT INTO blob_parts (blob, start, data) VALUES (?, ?, ?)",
        (
            (blob, start + offset, data[offset : offset + BLOB_PART_BYTES])
            for offset in range(0, len(data), BLOB_PART_BYTES)
        ),
    )


def _discard(blob: int, connection: apsw.Connection) -> None:
    """Remove a blob that has no name."""
    removed = "DELETE FROM blobs WHERE id = ? AND names = 0 RETURNING id"
    if first(connection, removed, (blob,)) is not None:
        connection.execute("DELETE FROM blob_parts WHERE blob = ?", (blob,))


def _look_up(connection: apsw.Connection, path: str, key: str) -> tuple[int, int] | None:
    """Return a blob's number and size."""
    row = first(
        connection,
        "SELECT b.id, b.size FROM blob_names n JOIN blobs b ON b.id = n.blob "
        "WHERE n.path = ? AND n.key = ?",
        (path, key),
    )
    return None if row is None else (row[0], row[1])


def _find(connection: apsw.Connection, path: str, key: str) -> tuple[int, int]:
    found = _look_up(connection, path, key)
    if found is None:
        raise NotFound(f"{path}/{key}: no such blob")
    return found


def _name_new(path: str, key: str, blob: int, connection: apsw.Connection) -> None:
    if _look_up(connection, path, key) is not None:
        raise AlreadyExists(f"{path}/{key}: is there already")
    _name(connection, path, key, blob)


def _name(connection: apsw.Connection, path: str, key: str, blob: int) -> None:
    connection.execute(
        "INSERT INTO blob_names (path, key, blob) VALUES (?, ?, ?)", (path, key, blob)
    )
    connection.execute("UPDATE blobs SET names = names + 1 WHERE id = ?", (blob,))


def _link(source: str, target: str, connection: apsw.Connection) -> None:
    rows = select_all(
        connection,
        "SELECT key, blob FROM blob_names WHERE path = ?1 AND key NOT IN "
        "(SELECT key FROM blob_names WHERE path = ?2)",
        (source, target),
    )
    for key, blob in rows:
        _name(connection, target, key, blob)


def _keys_after(path: str, last: str, connection: apsw.Connection) -> list[str]:
    rows = select(
        connection,
        "SELECT key FROM blob_names WHERE path = ? AND key > ? ORDER BY key LIMIT ?",
        (path, last, BLOB_KEYS_PAGE),
    )
    return [key for (key,) in rows]


def _read(connection: apsw.Connection, blob: int, start: int, end: int) -> bytes:
    rows = select(
        connection,
        "SELECT start, data FROM blob_parts WHERE blob = ?1 AND start < ?3 AND start >= "
        "(SELECT max(start) FROM blob_parts WHERE blob = ?1 AND start <= ?2) ORDER BY start",
        (blob, start, end),
    )
    return b"".join(data[max(0, start - at) : max(0, end - at)] for at, data in rows)
