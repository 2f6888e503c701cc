"""Opening connections: the file, its mode, its journal, and whether it can be trusted."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import apsw
from msgspec import Struct

from vaala_storage.errors import NotFound, StorageCorrupt, StorageFailed, StorageFull
from vaala_storage.records import Namespace
from vaala_storage.sqlite import blobs, ranking, schema
from vaala_storage.sqlite.failures import translate
from vaala_storage.sqlite.limits import (
    CHECKED_AT_OPEN_BYTES_MAX,
    READER_THREADS,
    WAL_BYTES_KEPT,
)
from vaala_storage.sqlite.rows import value

Sync: TypeAlias = Literal["full", "normal", "off"]


class Opening(Struct, frozen=True):
    """How a database is to be opened."""

    path: Path
    namespaces: tuple[Namespace, ...]
    sync: Sync
    read_only: bool
    busy_s: float


class Opened(Struct, frozen=True):
    writer: apsw.Connection | None
    readers: Sequence[apsw.Connection]
    tables: Sequence[schema.Table]
    wal: bool


def open_connections(opening: Opening) -> Opened:
    """Open every connection of a database, checked and prepared; blocks."""
    connections: list[apsw.Connection] = []
    try:
        return _open(opening, connections.append)
    except BaseException:
        for connection in connections:
            connection.close(force=True)
        raise


def quick_check(connection: apsw.Connection) -> None:
    """Read the whole database, the full-text index too; raises `StorageCorrupt`."""
    result = value(connection, "PRAGMA quick_check(1)")
    if result != "ok":
        raise StorageCorrupt(f"{connection.filename}: {result}")


def _open(opening: Opening, opened: Callable[[apsw.Connection], None]) -> Opened:
    if opening.read_only:
        first = _connect(opening, opened)
        with _mapped(opening, first):
            tables: Sequence[schema.Table] = schema.readable(first, opening.namespaces)
            readers = [first, *_readers(opening, opened, READER_THREADS - 1)]
            return Opened(None, readers, tables, _is_wal(first))
    _make_file(opening.path)
    writer = _connect(opening, opened)
    with _mapped(opening, writer):
        schema.check_ours(writer)  # before anything is changed
        _tighten_mode(opening.path)
        wal = _engage_wal(writer)
        writer.pragma("synchronous", opening.sync)
        writer.pragma("journal_size_limit", WAL_BYTES_KEPT)
        _check(writer, opening.path)
        tables = _prepare(writer, opening.namespaces)
    return Opened(writer, _readers(opening, opened, READER_THREADS), tables, wal)


def _connect(opening: Opening, opened: Callable[[apsw.Connection], None]) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READONLY if opening.read_only else apsw.SQLITE_OPEN_READWRITE
    try:
        connection = apsw.Connection(str(opening.path), flags)
    except apsw.CantOpenError as error:
        if not opening.path.exists():
            raise NotFound(f"{opening.path}: no such database") from error
        raise StorageFailed(f"{opening.path}: cannot be opened: {error}") from error
    opened(connection)
    connection.set_busy_timeout(round(opening.busy_s * 1000))
    with _mapped(opening, connection):
        value(connection, "SELECT count(*) FROM sqlite_schema")  # finds garbage
        ranking.register(connection)
        connection.pragma("fullfsync", True)  # macOS: fsync alone does not reach the disk
    return connection


def _readers(
    opening: Opening, opened: Callable[[apsw.Connection], None], count: int
) -> list[apsw.Connection]:
    return [_connect(opening, opened) for _ in range(count)]


@contextmanager
def _mapped(opening: Opening, connection: apsw.Connection) -> Generator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translate(
            error, opening.path, writing=False, errno_below=connection.system_errno
        ) from error


def _make_file(path: Path) -> None:
    """Create a missing file for its owner alone; SQLite gives its other files the same mode.

    A file that exists is not opened here: closing it would drop the locks that this process holds
    on it through SQLite (a property of POSIX locks).
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        directory = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except FileExistsError:
        pass
    except OSError as error:
        kind = StorageFull if error.errno in (errno.ENOSPC, errno.EDQUOT) else StorageFailed
        raise kind(f"{path}: cannot be made: {error}") from error


def _tighten_mode(path: Path) -> None:
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)


def _engage_wal(connection: apsw.Connection) -> bool:
    """Switch to write-ahead logging; tell whether it engaged (some file systems cannot)."""
    try:
        connection.pragma("journal_mode", "wal")
    except apsw.BusyError:  # another process reads in the old mode
        return False
    return _is_wal(connection)


def _is_wal(connection: apsw.Connection) -> bool:
    return bool(connection.pragma("journal_mode") == "wal")


def _check(connection: apsw.Connection, path: Path) -> None:
    if path.stat().st_size <= CHECKED_AT_OPEN_BYTES_MAX:
        quick_check(connection)


def _prepare(
    connection: apsw.Connection, namespaces: Iterable[Namespace]
) -> Sequence[schema.Table]:
    """Make the database ready; takes no lock for writing when it is already."""
    tables = schema.prepared(connection, namespaces)
    if tables is None or blobs.has_unnamed(connection):
        connection.execute("BEGIN IMMEDIATE")
        try:
            schema.create_or_check(connection)
            tables = schema.declare(connection, namespaces)
            blobs.sweep(connection)
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")
    schema.probe(connection)
    return tables
