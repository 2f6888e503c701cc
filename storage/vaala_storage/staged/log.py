"""`LogStorage` in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import trio
from msgspec import Struct, field

from vaala_storage.cursors import check_limit
from vaala_storage.entry_rules import check_batch, encode_entries, encode_new, make_page
from vaala_storage.errors import AlreadyExists, Conflict, NotFound
from vaala_storage.log import Damage, Entry, LogStorage, Page, PathPage
from vaala_storage.names import check_name, check_path
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.limits import VALUE_BYTES


class _Path(Struct):
    streams: dict[str, list[bytes]] = field(default_factory=dict[str, list[bytes]])
    lock: trio.Lock = field(default_factory=trio.Lock)
    """Held while the path is handed over: nothing may be appended that would stay behind."""


class StagedLog(LogStorage):
    """Entries are kept as JSON, so what is read is what a store on disk would give."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._paths: dict[str, _Path] = {}

    async def append(
        self, path: str, stream: str, entries: Sequence[Entry], *, expected: int
    ) -> int:
        """See `LogStorage.append`; waits while the path is handed over, then it is not there."""
        _check(path, stream)
        data = encode_entries(entries)
        check_batch(f"{path}/{stream}", data)
        async with self._path(path).lock:
            streams = self._path(path).streams
            last = len(streams.get(stream, ()))
            if last != expected:
                raise Conflict(path, stream, expected=expected, last=last)
            if data:
                self._budget.change(_size(data))
                streams.setdefault(stream, []).extend(data)
            return last + len(data)

    async def create(self, path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
        check_path(path)
        encoded = encode_new(path, streams)
        await trio.lowlevel.checkpoint()
        if path in self._paths:
            raise AlreadyExists(f"{path}: exists already")
        self._budget.change(sum(map(_size, encoded.values())))
        self._paths[path] = _Path(encoded)

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
        await trio.lowlevel.checkpoint()
        entries = self._stream(path, stream)
        end = len(entries) + 1 if before is None else min(before, len(entries) + 1)
        seqs = range(max(after or 0, 0) + 1, end)
        wanted = reversed(seqs) if reverse else iter(seqs)
        return make_page(((seq, entries[seq - 1]) for seq in wanted), limit)

    async def last(self, path: str, stream: str) -> int:
        _check(path, stream)
        await trio.lowlevel.checkpoint()
        return len(self._stream(path, stream))

    async def recover(self, path: str, stream: str) -> tuple[int, tuple[Damage, ...]]:
        """Return the last sequence; nothing can be torn here."""
        _check(path, stream)
        await trio.lowlevel.checkpoint()
        return len(self._path(path).streams.get(stream, ())), ()

    async def make_durable(self, path: str) -> None:
        """Memory is all that there is."""
        _check(path)
        await trio.lowlevel.checkpoint()

    async def streams(self, path: str) -> tuple[str, ...]:
        _check(path)
        await trio.lowlevel.checkpoint()
        return tuple(sorted(self._path(path).streams))

    async def paths(self, *, cursor: str | None = None, limit: int = 1000) -> PathPage:
        check_limit(limit)
        await trio.lowlevel.checkpoint()
        paths = sorted(path for path in self._paths if cursor is None or path > cursor)
        more = len(paths) > limit
        return PathPage(tuple(paths[:limit]), paths[limit - 1] if more else None)

    async def delete_stream(self, path: str, stream: str) -> None:
        _check(path, stream)
        await trio.lowlevel.checkpoint()
        found = self._paths.get(path)
        if found is None:
            return
        async with found.lock:
            self._budget.change(-_size(found.streams.pop(stream, [])))
            if not found.streams:
                self._paths.pop(path, None)

    async def delete_path(self, path: str) -> None:
        _check(path)
        await trio.lowlevel.checkpoint()
        within = [name for name in self._paths if name == path or name.startswith(f"{path}/")]
        for name in within:
            async with self._paths[name].lock:
                self.drop(name)

    async def release(self, path: str) -> None:
        """Nothing is cached for a path."""
        await trio.lowlevel.checkpoint()

    def lock(self, path: str) -> trio.Lock:
        """Return what is held while a path is handed over; raises `NotFound`."""
        return self._path(path).lock

    def staged(self, path: str) -> dict[str, list[bytes]]:
        """Return every stream of a path as JSON; raises `NotFound`."""
        return self._path(path).streams

    def drop(self, path: str) -> None:
        """Remove a path whose lock is held."""
        found = self._paths.pop(path, None)
        if found is not None:
            self._budget.change(-sum(map(_size, found.streams.values())))

    def _path(self, path: str) -> _Path:
        try:
            return self._paths[path]
        except KeyError:
            raise NotFound(f"{path}: no such path in memory") from None

    def _stream(self, path: str, stream: str) -> list[bytes]:
        try:
            return self._path(path).streams[stream]
        except KeyError:
            raise NotFound(f"{path}/{stream}: no such stream in memory") from None


def _check(path: str, *streams: str) -> None:
    check_path(path)
    for stream in streams:
        check_name(stream)


def _size(entries: list[bytes]) -> int:
    return sum(map(len, entries)) + VALUE_BYTES * len(entries)
