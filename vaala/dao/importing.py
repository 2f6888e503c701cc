"""Making a conversation of an archive."""

from __future__ import annotations

from collections import Counter
from typing import Any

from vaala.dao.archive_read import ArchiveReader, Member, Source
from vaala.dao.archive_write import ARCHIVE_FORMAT, ARCHIVE_VERSION
from vaala.dao.building import BUILDING_STREAM, Build, building
from vaala.dao.entries import METADATA_STREAM, ROOT_STREAM
from vaala.dao.errors import BadArchive
from vaala.dao.home import Shared
from vaala.dao.limits import (
    ARCHIVE_MANIFEST_BYTES_MAX,
    ARCHIVE_PART_BYTES_MAX,
    ARCHIVE_STREAMS_MAX,
)
from vaala_protocol.base import Malformed, decode
from vaala_protocol.ids import new_id
from vaala_storage.blobs import BlobStorage
from vaala_storage.errors import AlreadyExists, TooLarge


async def import_conversation(shared: Shared, source: Source) -> str:
    """Read an archive into a new conversation and return its id.

    The entries come as they are, with the origin that they have: so it is a foreign one here.
    """
    path = new_id()
    reader = ArchiveReader(source)
    _check_manifest(await _manifest(reader))
    async with building(shared.log, shared.blobs, path, shared.instance) as build:
        await _Import(reader, build, shared.blobs).run()
    shared.index.stale(path)
    return path


async def _manifest(reader: ArchiveReader) -> Any:
    member = await reader.next()
    if member is None or not member.is_manifest:
        raise BadArchive("not an archive of a conversation: it does not begin with manifest.json")
    try:
        return decode(await reader.whole(member, ARCHIVE_MANIFEST_BYTES_MAX))
    except Malformed as error:
        raise BadArchive(f"manifest.json in the archive: {error}") from error


def _check_manifest(manifest: Any) -> None:
    match manifest:
        case {"format": str(kind), "version": int(version)} if kind == ARCHIVE_FORMAT:
            if version > ARCHIVE_VERSION:
                raise BadArchive(
                    f"the archive has version {version}, this vaala reads up to "
                    f"{ARCHIVE_VERSION}: upgrade vaala"
                )
        case _:
            raise BadArchive("not an archive of a conversation: its manifest says something else")


class _Import:
    def __init__(self, reader: ArchiveReader, build: Build, blobs: BlobStorage) -> None:
        self._reader = reader
        self._build = build
        self._blobs = blobs
        self._parts: Counter[str] = Counter()

    async def run(self) -> None:
        while (member := await self._reader.next()) is not None:
            if member.stream is not None:
                await self._part(member.stream, member)
            elif member.blob is not None:
                await self._blob(member.blob, member)
            else:
                raise BadArchive("a second manifest.json in the archive")
        for stream in (METADATA_STREAM, ROOT_STREAM):
            if not self._parts[stream]:
                raise BadArchive(f"the archive has no stream {stream!r}")

    async def _part(self, stream: str, member: Member) -> None:
        self._parts[stream] += 1
        if member.part != self._parts[stream] or stream == BUILDING_STREAM:
            raise BadArchive(f"part {member.part} of the stream {stream!r} is out of place")
        if len(self._parts) > ARCHIVE_STREAMS_MAX:
            raise BadArchive(f"an archive holds at most {ARCHIVE_STREAMS_MAX} streams")
        data = await self._reader.whole(member, ARCHIVE_PART_BYTES_MAX)
        for line in data.split(b"\n"):
            if line:
                await self._entry(stream, line)

    async def _entry(self, stream: str, line: bytes) -> None:
        try:
            entry = decode(line)
        except Malformed as error:
            raise BadArchive(f"an entry of the stream {stream!r}: {error}") from error
        if not isinstance(entry, dict):
            raise BadArchive(f"an entry of the stream {stream!r} is no JSON object")
        try:
            await self._build.add(stream, entry)
        except TooLarge as error:
            raise BadArchive(f"an entry of the stream {stream!r}: {error}") from error

    async def _blob(self, key: str, member: Member) -> None:
        try:
            async with self._blobs.writer(self._build.path, key) as writer:
                async for chunk in self._reader.chunks(member):
                    await writer.write(chunk)
                await writer.commit()
        except AlreadyExists as error:
            raise BadArchive(f"the blob {key!r} is twice in the archive") from error
