"""`LogStorage` in SQLite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import apsw

from vaala_storage.cursors import check_limit
from vaala_storage.entry_rules import Ask, check_batch, encode_entries, encode_new, make_page
from vaala_storage.errors import AlreadyExists, Conflict, NotFound
from vaala_storage.log import Damage, Entry, LogStorage, Page, PathPage
from vaala_storage.names import check_name, check_path
from vaala_storage.sqlite.access import Access
from vaala_storage.sqlite.blobs import remove_names
from vaala_storage.sqlite.rows import first, select, select_all


class SqliteLog(LogStorage):
    """A path exists while it has a stream. Appends that wait together share one commit."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def append(
        self, path: str, stream: str, entries: Sequence[Entry], *, expected: int
    ) -> int:
        _check(path, stream)
        data = encode_entries(entries)
        check_batch(f"{path}/{stream}", data)

        def work(connection: apsw.Connection) -> int:
            found = _find(connection, path, stream)
            number, last = found if found is not None else (None, 0)
            if number is None:
                _check_path_exists(connection, path)
            if last != expected:
                raise Conflict(path, stream, expected=expected, last=last)
            if data:
                _insert(connection, number or _new(connection, path, stream), last, data)
            return last + len(data)

        return await self._access.write(work)

    async def create(self, path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
        check_path(path)
        encoded = encode_new(path, streams)

        def work(connection: apsw.Connection) -> None:
            if _names(connection, path):
                raise AlreadyExists(f"{path}: exists already")
            for name, entries in encoded.items():
                _insert(connection, _new(connection, path, name), 0, entries)

        await self._access.write(work)

    async def read(
        self,
        path: str,
        stream: str,
        *,
        after: int | None = None,
        before: int | None = None,
        limit: int = 1000,
        reverse: bool = False,
    ) -> Page:
        _check(path, stream)
        check_limit(limit)
        ask = Ask(after or 0, before, limit, reverse)

        def work(connection: apsw.Connection) -> Page:
            return _read(connection, _found(connection, path, stream)[0], ask)

        return await self._access.read(work)

    async def last(self, path: str, stream: str) -> int:
        _check(path, stream)
        return await self._access.read(lambda connection: _found(connection, path, stream)[1])

    async def recover(self, path: str, stream: str) -> tuple[int, tuple[Damage, ...]]:
        """Return the last sequence, behind every write that was begun; there is nothing to cut."""
        _check(path, stream)
        return await self._access.write(partial(_last, path, stream)), ()

    async def make_durable(self, path: str) -> None:
        """Commit: that syncs the one file that holds every commit, a killed process's too."""
        _check(path)

        def work(connection: apsw.Connection) -> None:
            for change in (1, -1):  # SQLite leaves out a write that changes nothing
                sql = "UPDATE streams SET last = last + ? WHERE path = ?"
                connection.execute(sql, (change, path))

        await self._access.write(work)

    async def streams(self, path: str) -> tuple[str, ...]:
        _check(path)

        def work(connection: apsw.Connection) -> tuple[str, ...]:
            _check_path_exists(connection, path)
            return _names(connection, path)

        return await self._access.read(work)

    async def paths(self, *, cursor: str | None = None, limit: int = 1000) -> PathPage:
        check_limit(limit)

        def work(connection: apsw.Connection) -> PathPage:
            rows = select_all(
                connection,
                "SELECT DISTINCT path FROM streams WHERE path > ? ORDER BY path LIMIT ?",
                (cursor or "", limit + 1),
            )
            paths = tuple(path for (path,) in rows[:limit])
            return PathPage(paths, paths[-1] if len(rows) > limit else None)

        return await self._access.read(work)

    async def delete_stream(self, path: str, stream: str) -> None:
        _check(path, stream)

        def work(connection: apsw.Connection) -> None:
            _delete(connection, path, stream)

        await self._access.write(work)

    async def delete_path(self, path: str) -> None:
        _check(path)

        def work(connection: apsw.Connection) -> None:
            for inner in _at_or_below(connection, path):
                for name in _names(connection, inner):
                    _delete(connection, inner, name)
                remove_names(connection, inner)

        await self._access.write(work)

    async def release(self, path: str) -> None:
        """Nothing is cached for a path."""


def _check(path: str, *streams: str) -> None:
    check_path(path)
    for stream in streams:
        check_name(stream)


def _find(connection: apsw.Connection, path: str, stream: str) -> tuple[int, int] | None:
    """Return a stream's number and last sequence."""
    row = first(
        connection, "SELECT id, last FROM streams WHERE path = ? AND name = ?", (path, stream)
    )
    return None if row is None else (row[0], row[1])


def _found(connection: apsw.Connection, path: str, stream: str) -> tuple[int, int]:
    found = _find(connection, path, stream)
    if found is None:
        raise NotFound(f"{path}/{stream}: no such stream")
    return found


def _last(path: str, stream: str, connection: apsw.Connection) -> int:
    found = _find(connection, path, stream)
    if found is None:
        _check_path_exists(connection, path)
        return 0
    return found[1]


def _at_or_below(connection: apsw.Connection, path: str) -> list[str]:
    """Return the path and the paths within it that hold anything."""
    within = (f"{path}/", f"{path}0")  # "0" follows "/"
    rows = select_all(
        connection,
        "SELECT path FROM streams WHERE path >= ?1 AND path < ?2 UNION "
        "SELECT path FROM blob_names WHERE path >= ?1 AND path < ?2",
        within,
    )
    return [path, *(inner for (inner,) in rows)]


def _names(connection: apsw.Connection, path: str) -> tuple[str, ...]:
    sql = "SELECT name FROM streams WHERE path = ? ORDER BY name"
    rows = select(connection, sql, (path,))
    return tuple(name for (name,) in rows)


def _check_path_exists(connection: apsw.Connection, path: str) -> None:
    if not _names(connection, path):
        raise NotFound(f"{path}: no such path")


def _new(connection: apsw.Connection, path: str, stream: str) -> int:
    connection.execute("INSERT INTO streams (path, name, last) VALUES (?, ?, 0)", (path, stream))
    return connection.last_insert_rowid()


def _insert(connection: apsw.Connection, stream: int, last: int, entries: list[bytes]) -> None:
    connection.executemany(
        "INSERT INTO entries (stream, seq, entry) VALUES (?, ?, ?)",
        [(stream, last + index, entry) for index, entry in enumerate(entries, start=1)],
    )
    connection.execute("UPDATE streams SET last = ? WHERE id = ?", (last + len(entries), stream))


def _read(connection: apsw.Connection, stream: int, ask: Ask) -> Page:
    rows = select(
        connection,
        "SELECT seq, entry FROM entries WHERE stream = ?1 AND seq > ?2 "
        "AND (?3 IS NULL OR seq < ?3) "
        f"ORDER BY seq {'DESC' if ask.reverse else 'ASC'} LIMIT ?4",
        (stream, ask.after, ask.before, ask.limit + 1),
    )
    return make_page(((seq, data) for seq, data in rows), ask.limit)


def _delete(connection: apsw.Connection, path: str, stream: str) -> None:
    found = _find(connection, path, stream)
    if found is not None:
        connection.execute("DELETE FROM entries WHERE stream = ?", (found[0],))
        connection.execute("DELETE FROM streams WHERE id = ?", (found[0],))
