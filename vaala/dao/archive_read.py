"""Reading an archive of `vaala.dao.archive_write`, which may come from anywhere.

Only members with exactly the names that we write are taken, so no name can lead out of the
conversation; everything is bounded.
"""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from vaala.dao.errors import BadArchive
from vaala.dao.limits import ARCHIVE_BYTES_MAX, ARCHIVE_CHUNK_BYTES, ARCHIVE_MEMBERS_MAX
from vaala_storage.names import check_name

Source: TypeAlias = Callable[[int], Awaitable[bytes]]
"""Gives up to so many bytes of the archive, none at its end."""

_BLOCK = 512
_GZIP = 16 + zlib.MAX_WBITS
_NAME = re.compile(r"(manifest\.json)|streams/([^/]+)/([0-9]{6})\.jsonl|blobs/([^/]+)")


class Member(Struct, frozen=True):
    """What comes next in an archive: the manifest, a part of a stream, or a blob."""

    size: int
    stream: str | None = None
    part: int = 0
    blob: str | None = None

    @property
    def is_manifest(self) -> bool:
        return self.stream is None and self.blob is None


class ArchiveReader:
    """Yields members; the bytes of each are read with `chunks` before the next one is asked for."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._gzip = zlib.decompressobj(wbits=_GZIP)
        self._ready = bytearray()
        self._taken = 0
        self._members = 0

    async def next(self) -> Member | None:
        """Return the next member, None at the end; raises `BadArchive`."""
        header = await self._exactly(_BLOCK)
        if header == bytes(_BLOCK):
            return None
        try:
            info = tarfile.TarInfo.frombuf(header, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeDecodeError) as error:
            raise BadArchive(f"not an archive of a conversation: {error}") from error
        self._members += 1
        if self._members > ARCHIVE_MEMBERS_MAX:
            raise BadArchive(f"an archive holds at most {ARCHIVE_MEMBERS_MAX} members")
        if not info.isreg():
            raise BadArchive(f"{info.name[:200]!r} in the archive is no plain file")
        if info.size < 0:  # one way to write a size has a sign
            raise BadArchive(f"{info.name[:200]!r} in the archive has {info.size} bytes")
        return _member(info.name, info.size)

    async def chunks(self, member: Member) -> AsyncIterator[bytes]:
        """Yield the bytes of the member that `next` gave last; raises `BadArchive`."""
        left = member.size
        while left:
            chunk = await self._exactly(min(left, ARCHIVE_CHUNK_BYTES))
            left -= len(chunk)
            yield chunk
        await self._exactly(-member.size % _BLOCK)

    async def whole(self, member: Member, limit: int) -> bytes:
        """Return the bytes of a member; raises `BadArchive` when they are more than ``limit``."""
        if member.size > limit:
            raise BadArchive(f"a member of {member.size} bytes: at most {limit}")
        return b"".join([chunk async for chunk in self.chunks(member)])

    async def _exactly(self, count: int) -> bytes:
        while len(self._ready) < count:
            await self._fill()
        data = bytes(self._ready[:count])
        del self._ready[:count]
        self._taken += count
        if self._taken > ARCHIVE_BYTES_MAX:
            raise BadArchive(f"the archive holds more than {ARCHIVE_BYTES_MAX} bytes")
        return data

    async def _fill(self) -> None:
        packed = self._gzip.unconsumed_tail or await self._source(ARCHIVE_CHUNK_BYTES)
        if not packed or self._gzip.eof:
            raise BadArchive("the archive ends before its end: it was cut off")
        try:
            # Bounded: a few bytes can stand for gigabytes.
            self._ready += self._gzip.decompress(packed, 4 * ARCHIVE_CHUNK_BYTES)
        except zlib.error as error:
            raise BadArchive(f"not an archive of a conversation: {error}") from error


def _member(name: str, size: int) -> Member:
    found = _NAME.fullmatch(name)
    if found is None:
        raise BadArchive(f"{name[:200]!r} does not belong into an archive of a conversation")
    manifest, stream, part, blob = found.groups()
    if manifest:
        return Member(size)
    try:
        check_name(stream or blob)
    except ValueError as error:
        raise BadArchive(f"{name[:200]!r} in the archive: {error}") from error
    if stream:
        return Member(size, stream=stream, part=int(part))
    return Member(size, blob=blob)
