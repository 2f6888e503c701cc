"""Copies of conversations: whole ones, and forks that begin like another one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from vaala.dao.blocks import ends_block, locate
from vaala.dao.building import Build, building
from vaala.dao.copy_source import CopySource
from vaala.dao.entries import METADATA_STREAM, ROOT_STREAM, Entry, format_entry, origin_entry
from vaala.dao.home import Shared
from vaala.dao.metadata import origin_hash
from vaala.dao.walk import Walk
from vaala_protocol.errors import BadRequest, Busy, NotFound
from vaala_protocol.ids import new_id


async def copy_conversation(shared: Shared, source: CopySource) -> str:
    """Copy everything there is; return the id of the copy."""
    ends = await source.ends()
    ends.pop(METADATA_STREAM, None)
    copy = _Copy(shared, source, cut=False)
    return await copy.run(ends, parent=source.metadata.fork_parent)


async def fork_conversation(shared: Shared, source: CopySource, at: int | None) -> str:
    """Copy up to a step border, see `Store.fork`; return the id of the fork.

    Raises `BadRequest` for a place before the first item and `Busy` when no step has ended yet.
    """
    end = await _last_border(source, ROOT_STREAM)
    if end == 0:
        raise Busy(f"conversation {source.path} has no step that has ended: try again later")
    if at is not None:
        end = await _border_after(source, at) or end
    return await _Copy(shared, source, cut=True).run({ROOT_STREAM: end}, parent=source.path)


async def fork_after_turn(shared: Shared, source: CopySource, turn_id: str) -> str:
    """Copy up to the end of a turn of the root session; return the id of the fork.

    Raises `NotFound` for an unknown turn and `Busy` for one that has not ended.
    """
    walk = Walk(source.stream(ROOT_STREAM), None, back=True)
    while (stored := await walk.next()) is not None:
        if stored.entry.get("t") == "turn" and stored.entry.get("id") == turn_id:
            if not ends_block(stored.entry):
                raise Busy(f"turn {turn_id} has not ended: try again later")
            return await _Copy(shared, source, cut=True).run(
                {ROOT_STREAM: stored.seq}, parent=source.path
            )
    raise NotFound(f"conversation {source.path} has no turn {turn_id[:80]!r}")


async def _last_border(source: CopySource, stream: str) -> int:
    """Return the sequence of the last entry that ends a step, 0 when there is none."""
    walk = Walk(source.stream(stream), None, back=True)
    while (stored := await walk.next()) is not None:
        if ends_block(stored.entry):
            return stored.seq
    return 0


async def _border_after(source: CopySource, at: int) -> int:
    """Return the end of the step that holds the last item with a place up to ``at``.

    The end of a turn right after it counts to it. 0: that step has not ended.
    """
    low, _ = await locate(source.stream(ROOT_STREAM), at + 1)
    walk = Walk(source.stream(ROOT_STREAM), max(0, low - 1))
    border = 0
    inside = beyond = met = False
    while (stored := await walk.next()) is not None:
        place = stored.entry.get("at") if stored.entry.get("t") == "item" else None
        if isinstance(place, int):
            inside = inside or place <= at
            beyond = beyond or place > at
            met = met or inside
        if ends_block(stored.entry):
            if inside or (border and not beyond):
                border = stored.seq
            elif beyond:
                break
            inside = beyond = False
    if not met:
        raise BadRequest(f"conversation {source.path} has no item at or before {at}")
    return 0 if inside else border


class _Copy:
    """Copies streams of one conversation into a new one.

    ``cut``: only what has ended, of the sessions spawned in what is copied too; a turn that went on
    is closed there. Otherwise all there is, and what runs is settled when the copy is opened.
    """

    def __init__(self, shared: Shared, source: CopySource, *, cut: bool) -> None:
        self._shared = shared
        self._source = source
        self._cut = cut
        self._path = new_id()
        self._origin = origin_hash(shared.place, self._path)
        self._spawned: list[str] = []

    async def run(self, ends: Mapping[str, int], *, parent: str | None) -> str:
        """Copy each stream up to its end and return the id of the copy."""
        shared = self._shared
        async with building(shared.log, shared.blobs, self._path, shared.instance) as build:
            await self._blobs()
            for stream, end in ends.items():
                await self._stream(build, stream, end)
            done = set(ends)
            while self._cut and self._spawned:
                stream = self._spawned.pop()
                if stream not in done:
                    done.add(stream)
                    await self._child(build, stream)
            await self._metadata(build, parent)
        shared.index.stale(self._path)
        return self._path

    async def _child(self, build: Build, stream: str) -> None:
        if stream in await self._source.log.streams(self._source.path):
            await self._stream(build, stream, await _last_border(self._source, stream))

    async def _stream(self, build: Build, stream: str, end: int) -> None:
        running: str | None = None
        async for entry in self._source.entries(stream, end):
            running = _running_turn(entry, running)
            self._note_spawned(entry)
            await build.add(stream, entry)
        if running is not None and self._cut:
            await build.add(stream, _cut_short(running, self._shared.clock()))
        await build.add(stream, origin_entry(self._origin))

    def _note_spawned(self, entry: Entry) -> None:
        match entry.get("details"):
            case {"type": "agent", "action": "spawn", "sessionId": str(child)}:
                self._spawned.append(child)
            case _:
                pass

    async def _metadata(self, build: Build, parent: str | None) -> None:
        record = msgspec.structs.replace(
            self._source.metadata,
            created_at=self._shared.clock(),
            fork_parent=parent,
            archived=False,
            ephemeral=False,
            origin=self._origin,
        )
        await build.add(METADATA_STREAM, format_entry())
        await build.add(METADATA_STREAM, record.entry())

    async def _blobs(self) -> None:
        source, target = self._source.blobs, self._shared.blobs
        if source is target:
            await target.link(self._source.path, self._path)
            return
        async for key in source.keys(self._source.path):
            await target.put(self._path, key, await source.get(self._source.path, key))


def _running_turn(entry: Mapping[str, Any], running: str | None) -> str | None:
    """Return the id of the turn that runs after this entry."""
    if entry.get("t") != "turn" or not isinstance(entry.get("id"), str):
        return running
    return entry["id"] if entry.get("state", "running") == "running" else None


def _cut_short(turn_id: str, now: int) -> Entry:
    return {
        "t": "turn",
        "id": turn_id,
        "state": "interrupted",
        "stopReason": "interrupted",
        "interruptedBy": "user",
        "message": "the conversation was copied at this place",
        "endedAt": now,
    }
