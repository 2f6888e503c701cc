"""Writing a conversation as an archive: a gzip-compressed tar (ustar) that any tar can open.

    manifest.json                   {"format": "vaala-conversation", "version": 1, ...}; the first
    streams/<stream>/000001.jsonl   entries, one JSON object a line, in parts of about 1 MiB
    blobs/<key>                     blobs as they are

The stream "metadata" is the conversation's record, "main" its root session.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from vaala.dao.copy_source import CopySource
from vaala.dao.entries import FORMAT_MAJOR, FORMAT_MINOR
from vaala.dao.limits import ARCHIVE_CHUNK_BYTES, ARCHIVE_PART_BYTES
from vaala_protocol.base import encode

Sink: TypeAlias = Callable[[bytes], Awaitable[object]]
"""Takes the next bytes of the archive."""

ARCHIVE_FORMAT = "vaala-conversation"
ARCHIVE_VERSION = 1
_BLOCK = 512
_GZIP = 16 + zlib.MAX_WBITS


class ArchiveWriter:
    """Writes members one after the other; holds a piece of one at a time."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._gzip = zlib.compressobj(level=3, wbits=_GZIP)

    async def member(self, name: str, data: bytes) -> None:
        await self.begin(name, len(data))
        for start in range(0, len(data), ARCHIVE_CHUNK_BYTES):
            await self.write(data[start : start + ARCHIVE_CHUNK_BYTES])
        await self.end(len(data))

    async def begin(self, name: str, size: int) -> None:
        """Begin a member of exactly ``size`` bytes; `write` them, then call `end`."""
        info = tarfile.TarInfo(name)
        info.size = size
        info.mode = 0o600
        await self.write(info.tobuf(tarfile.USTAR_FORMAT))

    async def write(self, data: bytes) -> None:
        if packed := self._gzip.compress(data):
            await self._sink(packed)

    async def end(self, size: int) -> None:
        await self.write(bytes(-size % _BLOCK))

    async def finish(self) -> None:
        await self.write(bytes(2 * _BLOCK))
        await self._sink(self._gzip.flush())


async def write_archive(source: CopySource, sink: Sink, *, now: int) -> None:
    """Write the conversation as it is now; what is appended meanwhile is left out."""
    ends = await source.ends()
    writer = ArchiveWriter(sink)
    manifest = {
        "format": ARCHIVE_FORMAT,
        "version": ARCHIVE_VERSION,
        "conversationId": source.path,
        "title": source.title,
        "exportedAt": now,
        "entryFormat": [FORMAT_MAJOR, FORMAT_MINOR],
        "streams": ends,
    }
    await writer.member("manifest.json", encode(manifest) + b"\n")
    for stream, end in ends.items():
        await _write_stream(writer, source, stream, end)
    async for key in source.blobs.keys(source.path):
        await _write_blob(writer, source, key)
    await writer.finish()


async def _write_stream(writer: ArchiveWriter, source: CopySource, stream: str, end: int) -> None:
    part = 0
    lines = bytearray()

    async def flush() -> None:
        nonlocal part
        part += 1
        await writer.member(f"streams/{stream}/{part:06}.jsonl", bytes(lines))
        lines.clear()

    async for entry in source.entries(stream, end):
        lines.extend(_line(entry))
        if len(lines) >= ARCHIVE_PART_BYTES:
            await flush()
    if lines:
        await flush()


def _line(entry: Any) -> bytes:
    return encode(entry) + b"\n"


async def _write_blob(writer: ArchiveWriter, source: CopySource, key: str) -> None:
    size = await source.blobs.size(source.path, key)
    await writer.begin(f"blobs/{key}", size)
    for offset in range(0, size, ARCHIVE_CHUNK_BYTES):
        length = min(ARCHIVE_CHUNK_BYTES, size - offset)
        await writer.write(await source.blobs.get(source.path, key, offset=offset, length=length))
    await writer.end(size)
