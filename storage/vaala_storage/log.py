"""`LogStorage`: append-only streams of JSON entries.

A stream is named by a path and a stream id; both are made of ``[A-Za-z0-9._-]`` and "/" between
the parts of a path, and no part begins with a dot; other names raise ``ValueError`` everywhere. A
path exists while it holds a stream. Sequences count a stream's entries from 1.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

Entry: TypeAlias = Mapping[str, Any]
"""A JSON object. Storage gives it no meaning."""


class Stored(Struct, frozen=True):
    """One entry of a stream with its sequence."""

    seq: int
    entry: Entry


class Damage(Struct, frozen=True):
    """A gap in a stream: entries ``first`` to ``last`` cannot be read (None: not known)."""

    first: int | None
    last: int | None
    detail: str


class Page(Struct, frozen=True):
    """Entries in the order asked for.

    ``more`` tells whether there are entries beyond the page; ask for them with ``after=`` (or
    ``before=`` when reading in reverse) the last sequence of this page. ``damage`` lists the gaps
    met on the way; it never stops a read.
    """

    entries: tuple[Stored, ...]
    more: bool
    damage: tuple[Damage, ...] = ()


class PathPage(Struct, frozen=True):
    paths: tuple[str, ...]
    cursor: str | None
    """Pass it to get the next page; None: this was the last."""


class LogStorage(ABC):
    """Errors of the system that have no class of their own are `StorageFailed`, `ReadOnly` where
    nothing may be written. Reads may be cancelled at any time."""

    @abstractmethod
    async def append(
        self, path: str, stream: str, entries: Sequence[Entry], *, expected: int
    ) -> int:
        """Append ``entries`` and return the stream's last sequence.

        All entries of the call or none; durable on return. A missing stream of an existing path
        is at sequence 0; a missing path raises `NotFound`. Without entries the call only checks
        ``expected``. Calls that wait for one stream keep their order, and each is checked behind
        those before it.

        Raises `Conflict` when the last sequence is not ``expected`` (so a retry after an unknown
        outcome is safe), `TooLarge` when the entries are more than one batch may hold,
        ``ValueError`` or ``TypeError`` for what JSON cannot hold, `StorageFull` and `StorageFailed`
        with the stream as it was, `StreamBroken` when the outcome is unknown: call `recover`,
        compare, then go on; until then every append raises it. Cancellation: before the write
        began nothing happens; after that the call finishes in the background and a retry with
        the same ``expected`` gets `Conflict` with the entries in place.
        """

    @abstractmethod
    async def create(self, path: str, streams: Mapping[str, Sequence[Entry]]) -> None:
        """Make ``path`` with all its streams, or nothing; durable on return.

        Together the entries may be more than a batch. Raises `AlreadyExists` (what is there is
        durable then), `TooLarge` for one entry, `StorageFull`, ``ValueError`` without streams.
        After `StorageFailed` the path may be there: make the call again. A cancel has no effect
        once it has begun.
        """

    @abstractmethod
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
        """Return up to ``limit`` entries with ``after < seq < before``, newest first if reverse.

        Costs no more than the page plus a search by bisection, whatever the stream's length. A
        page is also bounded in bytes: it may hold fewer entries with ``more`` true, at least one.
        The writer's own reads see durable entries only; a reader in another process may see those
        of an append that is under way. Raises `NotFound`.
        """

    @abstractmethod
    async def last(self, path: str, stream: str) -> int:
        """Return the stream's last sequence, 0 when it has none; raises `NotFound`."""

    @abstractmethod
    async def recover(self, path: str, stream: str) -> tuple[int, tuple[Damage, ...]]:
        """Bring the stream to a state that can be appended to; return its last sequence.

        Cuts a torn end (its bytes are kept aside and told as damage, with the sequence that they
        would have had) and makes what is there durable. What a broken stream held behind its last
        durable entry is cut too: entries of unknown outcome have not been written then. Damage
        further up is told by `read`. Only the holder of the store's lock may call it. Needed after
        `StreamBroken`; `append` does it by itself for a stream that it opens for the first time.

        A missing stream of an existing path is at sequence 0. Raises `NotFound`, and
        `StreamBroken` when the device still fails: call it again. A cancel ends the waiting only.
        """

    @abstractmethod
    async def make_durable(self, path: str) -> None:
        """Make durable what all streams of a path hold, whoever wrote it; nothing is cut.

        A process that was killed between a write and its sync leaves entries that the next one
        can read and a power loss can still take. Call it before building on what such a process
        left, unless `append` or `recover` does it anyway: they see to their own stream. No error
        for a path that is not there. Raises `StorageFailed`, and `ReadOnly` like any change. A
        cancel leaves it to be done again.
        """

    @abstractmethod
    async def streams(self, path: str) -> tuple[str, ...]:
        """Return the names of the path's streams, sorted; raises `NotFound`."""

    @abstractmethod
    async def paths(self, *, cursor: str | None = None, limit: int = 1000) -> PathPage:
        """Return paths that hold streams, sorted."""

    @abstractmethod
    async def delete_stream(self, path: str, stream: str) -> None:
        """Remove a stream; no error when it is not there."""

    @abstractmethod
    async def delete_path(self, path: str) -> None:
        """Remove a path with everything in it, blobs and paths below it too.

        No error when it is not there. Gone for good on return.
        """

    @abstractmethod
    async def release(self, path: str) -> None:
        """Forget what is cached for a path (descriptors, positions); it may be used again.

        A broken stream stays broken.
        """
