"""Every `RecordStorage` and `SearchIndex`, opened for a test."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TypeAlias

from vaala_storage.records import Namespace, RecordStorage
from vaala_storage.search import SearchIndex
from vaala_storage.sqlite import open_sqlite
from vaala_storage.staged import StagedStorage

RecordsOpener: TypeAlias = Callable[
    [Path, Sequence[Namespace]], AbstractAsyncContextManager[RecordStorage]
]
SearchOpener: TypeAlias = Callable[[Path], AbstractAsyncContextManager[SearchIndex]]


@asynccontextmanager
async def sqlite_records(
    directory: Path, namespaces: Sequence[Namespace]
) -> AsyncGenerator[RecordStorage]:
    async with open_sqlite(directory / "r.db", namespaces=namespaces, sync="off") as database:
        yield database.records


@asynccontextmanager
async def staged_records(
    _directory: Path, namespaces: Sequence[Namespace]
) -> AsyncGenerator[RecordStorage]:
    yield StagedStorage(namespaces=namespaces).records


@asynccontextmanager
async def sqlite_search(directory: Path) -> AsyncGenerator[SearchIndex]:
    async with open_sqlite(directory / "s.db", sync="off") as database:
        yield database.search


@asynccontextmanager
async def staged_search(_directory: Path) -> AsyncGenerator[SearchIndex]:
    yield StagedStorage().search


RECORD_STORES: Mapping[str, RecordsOpener] = {"sqlite": sqlite_records, "staged": staged_records}
SEARCH_INDEXES: Mapping[str, SearchOpener] = {"sqlite": sqlite_search, "staged": staged_search}
