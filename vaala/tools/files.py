"""Files as tools see them: where a path leads, what is there, and whether it is as it was read."""

from __future__ import annotations

import hashlib
import posixpath

import trio
from msgspec import Struct

from vaala.permissions.base import Access, AccessKind
from vaala.tools import limits
from vaala.tools.base import ReadRecord, ToolContext, ToolFailure
from vaala.tools.text import clean_line
from vaala_executors.errors import FileMissing
from vaala_executors.workspace import FileStat, Place, Workspace


async def find_place(workspace: Workspace, path: str) -> Place:
    """Return where a path leads; the call that is allowed there works there and nowhere else."""
    if "\0" in path or not path:
        raise ToolFailure("the path is empty or holds a NUL character; give a path of a file")
    return await workspace.find(path)


def shown(place: Place) -> str:
    return clean_line(place.path, limits.TITLE_CHARS_MAX)


def access_to(workspace: Workspace, place: Place, kind: AccessKind) -> Access:
    """Return the access; its subject is relative to the working directory where it can be."""
    given = posixpath.normpath(posixpath.join(workspace.directory, place.path))
    below = given.removeprefix(workspace.directory.rstrip("/") + "/")
    others = {place.real_path, given, below} - {place.name}
    return Access(kind, place.name, place.root is None, tuple(sorted(others)))


class Loaded(Struct, frozen=True):
    stat: FileStat
    data: bytes | None
    """The content; None for a file that is too large to be held."""
    digest: str
    """SHA-256 in hex; empty for a file that is too large to be held."""


async def load(workspace: Workspace, place: Place) -> Loaded:
    """Read a file; raises `ToolFailure`, also for what is no regular file."""
    if place.stat is not None and place.stat.kind == "directory":
        raise ToolFailure(f"{shown(place)} is a directory; list_dir shows what is in it")
    found = await workspace.read_whole(place, limits.FILE_WHOLE_BYTES_MAX)
    digest = "" if found.data is None else await digest_of(found.data)
    return Loaded(found.stat, found.data, digest)


async def load_if_there(workspace: Workspace, place: Place) -> Loaded | None:
    try:
        return await load(workspace, place)
    except FileMissing:
        return None


async def digest_of(data: bytes) -> str:
    def digest() -> str:
        return hashlib.sha256(data).hexdigest()

    if len(data) <= limits.HASH_INLINE_BYTES_MAX:
        return digest()
    return await trio.to_thread.run_sync(digest)


def remember(context: ToolContext, place: Place, stat: FileStat, digest: str) -> None:
    """Note that the session knows this content of the file."""
    context.reads[file_key(context.workspace, place)] = ReadRecord(stat.size, stat.mtime_ns, digest)


def check_unchanged(context: ToolContext, place: Place, loaded: Loaded) -> None:
    """Refuse a change of what the session has not seen; equal bytes pass whatever the times say."""
    record = context.reads.get(file_key(context.workspace, place))
    if record is None:
        raise ToolFailure(
            f"{shown(place)} exists and was not read in this session, so it was not changed; "
            "read_file it first"
        )
    known = (
        (record.size, record.mtime_ns) == (loaded.stat.size, loaded.stat.mtime_ns)
        if loaded.data is None
        else record.digest == loaded.digest
    )
    if not known:
        raise ToolFailure(
            f"{shown(place)} has changed since it was read, so it was left as it is; "
            "read_file it again, then make the change"
        )


def file_key(workspace: Workspace, place: Place) -> str:
    """Return the name of a file that all sessions of the runtime have in common."""
    return f"{workspace.executor}:{place.real_path}"
