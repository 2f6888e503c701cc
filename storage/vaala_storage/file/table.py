"""The streams that a writer knows, within bounds: the one least recently used is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from vaala_storage.file.handles import Handles
from vaala_storage.file.layout import Layout
from vaala_storage.file.pool import Pool
from vaala_storage.file.stream import Stream
from vaala_storage.file.stream_file import StreamFile
from vaala_storage.file.watch import Watch
from vaala_storage.names import check_name


class StreamTable:
    def __init__(
        self, layout: Layout, pool: Pool, handles: Handles, watch: Watch, count_max: int
    ) -> None:
        self._layout = layout
        self._pool = pool
        self._handles = handles
        self._watch = watch
        self._count_max = count_max
        self._known: OrderedDict[tuple[str, str], Stream] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def file(self, path: str, stream: str) -> StreamFile:
        """Return a stream's file; raises ``ValueError`` for names that are none."""
        check_name(stream)
        self._layout.directory(path)
        return StreamFile(self._layout, path, stream)

    def find(self, path: str, stream: str) -> Stream | None:
        return self._known.get((path, stream))

    def get(self, path: str, stream: str) -> Stream:
        """Return the stream, from now on the most recently used one."""
        key = (path, stream)
        found = self._known.get(key)
        if found is None:
            found = Stream(self.file(path, stream), self._pool, self._handles, self._watch)
            self._known[key] = found
            self._make_room()
        self._known.move_to_end(key)
        return found

    def of(self, path: str) -> tuple[Stream, ...]:
        """Return the known streams of a path."""
        return tuple(known for known in self._known.values() if known.file.path == path)

    def within(self, path: str) -> tuple[Stream, ...]:
        """Return the known streams of a path and of the paths below it."""
        below = f"{path}/"
        return self.of(path) + tuple(
            known for known in self._known.values() if known.file.path.startswith(below)
        )

    def drop(self, streams: Iterable[Stream]) -> None:
        for stream in streams:
            self._known.pop((stream.file.path, stream.file.name), None)

    async def settle(self) -> None:
        """Return when nothing of any stream is in flight."""
        for stream in tuple(self._known.values()):
            await stream.idle()

    def _make_room(self) -> None:
        """Stay in bounds, unless streams at work or broken, which must be remembered, are more."""
        if len(self._known) <= self._count_max:
            return
        for key, stream in self._known.items():
            if stream.forgettable:
                stream.forget()
                del self._known[key]
                return
