"""Files as tools see them: where a path leads, what is there, and whether it is as it was read."""

from __future__ import annotations

import hashlib

import trio
from msgspec import Struct

from vaala.permissions.base import Access, AccessKind
from vaala.tools import limits
from vaala.tools.base import ReadRecord, ToolContext, ToolFailure
from vaala.tools.text import clean_line
from vaala_executors.errors import FileMissing
from vaala_executors.workspace import FileStat, Workspace


class Target(Struct, frozen=True):
    """A path that a call names, and where it led when the call was checked."""

    path: str
    real_path: str
    outside: bool
    directory: str

    @property
    def shown(self) -> str:
        return clean_line(self.path, limits.TITLE_CHARS_MAX)

    def access(self, kind: AccessKind) -> Access:
        """Return the access; its subject is relative to the working directory where it can be."""
        inside = self.real_path.removeprefix(self.directory.rstrip("/") + "/")
        return Access(kind, inside, self.outside)

    async def confirm(self, workspace: Workspace) -> None:
        """Check that the path still leads where it led when the call was allowed."""
        real_path, inside = await workspace.resolve(self.path)
        if real_path != self.real_path or inside is self.outside:
            raise self.moved()

    def moved(self) -> ToolFailure:
        return ToolFailure(
            f"{self.shown} leads to another place than when the call was checked; call again"
        )


async def find_target(workspace: Workspace, path: str) -> Target:
    if "\0" in path or not path:
        raise ToolFailure("the path is empty or holds a NUL character; give a path of a file")
    real_path, inside = await workspace.resolve(path)
    return Target(path, real_path, not inside, workspace.directory)


class Loaded(Struct, frozen=True):
    stat: FileStat
    data: bytes | None
    """The content; None for a file that is too large to be held."""
    digest: str
    """SHA-256 in hex; empty for a file that is too large to be held."""


async def load(workspace: Workspace, target: Target) -> Loaded:
    """Read a file that is where it was when the call was allowed; raises `ToolFailure`.

    What is no regular file is refused too.
    """
    stat = await workspace.stat(target.path, anywhere=target.outside)
    if stat.real_path != target.real_path:
        raise target.moved()
    if stat.kind == "directory":
        raise ToolFailure(f"{target.shown} is a directory; list_dir shows what is in it")
    if stat.kind != "file":
        raise ToolFailure(f"{target.shown} is no regular file (a device, socket or FIFO)")
    if stat.size > limits.FILE_WHOLE_BYTES_MAX:
        return Loaded(stat, None, "")
    bound = limits.FILE_WHOLE_BYTES_MAX + 1
    data = await workspace.read(target.path, length=bound, anywhere=target.outside)
    if len(data) == bound:
        return Loaded(stat, None, "")
    return Loaded(stat, data, await digest_of(data))


async def load_if_there(workspace: Workspace, target: Target) -> Loaded | None:
    try:
        return await load(workspace, target)
    except FileMissing:
        return None


async def digest_of(data: bytes) -> str:
    def digest() -> str:
        return hashlib.sha256(data).hexdigest()

    if len(data) <= limits.HASH_INLINE_BYTES_MAX:
        return digest()
    return await trio.to_thread.run_sync(digest)


def remember(context: ToolContext, stat: FileStat, digest: str) -> None:
    """Note that the session knows this content of the file."""
    context.reads[_key(context, stat)] = ReadRecord(stat.size, stat.mtime_ns, digest)


def check_unchanged(context: ToolContext, target: Target, loaded: Loaded) -> None:
    """Refuse a change of what the session has not seen; equal bytes pass whatever the times say."""
    record = context.reads.get(_key(context, loaded.stat))
    if record is None:
        raise ToolFailure(
            f"{target.shown} exists and was not read in this session, so it was not changed; "
            "read_file it first"
        )
    known = (
        (record.size, record.mtime_ns) == (loaded.stat.size, loaded.stat.mtime_ns)
        if loaded.data is None
        else record.digest == loaded.digest
    )
    if not known:
        raise ToolFailure(
            f"{target.shown} has changed since it was read, so it was left as it is; "
            "read_file it again, then make the change"
        )


def _key(context: ToolContext, stat: FileStat) -> str:
    return f"{context.workspace.executor}:{stat.real_path}"
