"""Copies, forks, archives and directories that were copied by hand."""

from __future__ import annotations

import gzip
import io
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.dao.conversing import (
    HOME,
    all_items,
    begin,
    exchange,
    files_below,
    listed,
    say,
    tell,
    write,
)
from tests.vaala.dao.stories import Story
from vaala.dao.blocks import ends_block
from vaala.dao.errors import BadArchive
from vaala.dao.store import Reader, SessionLog, Store, open_memory_store, open_store
from vaala_protocol.errors import BadRequest, Busy, NotFound
from vaala_protocol.items import Item
from vaala_protocol.settings import Settings
from vaala_protocol.state import Location, SessionInfo
from vaala_storage.file.lines import make_line


async def exported(store: Reader, conversation_id: str) -> bytes:
    data = bytearray()

    async def sink(piece: bytes) -> None:
        data.extend(piece)

    await store.export(conversation_id, sink)
    return bytes(data)


async def imported(store: Store, data: bytes, piece: int = 1 << 16) -> str:
    file = io.BytesIO(data)

    async def source(count: int) -> bytes:
        return file.read(min(count, piece))

    return await store.import_(source)


async def root_of(store: Reader, conversation_id: str) -> SessionLog:
    return await (await store.open(conversation_id)).open_session(conversation_id)


def elsewhere(items: list[Item], session_id: str) -> list[dict[str, Any]]:
    """Return what the items are without the session that they are in."""
    return [
        {name: getattr(item, name) for name in item.__struct_fields__ if name != "session_id"}
        for item in items
    ]


async def with_grants(store: Store) -> SessionLog:
    """Make a conversation in which something was allowed and something waits."""
    log, session = await begin(store)
    story = Story(3, log.id)
    while not session.state.head.grants:
        await tell(session, story, 1)
    source = {"type": "user", "content": []}
    await write(
        session, [{"t": "input", "id": "i", "clientId": "c", "createdAt": 1, "source": source}]
    )
    assert session.state.queue
    return session


@settings(max_examples=12)
@given(st.integers(0, 10**9), st.integers(1, 4000))
def test_an_archive_brings_everything_back(seed: int, piece: int) -> None:
    async def main() -> None:
        async with open_memory_store() as store, open_memory_store() as other:
            log, session = await begin(store, title="mine", tags=("a",))
            await tell(session, Story(seed, log.id), 4)
            key = await log.blobs.put(bytes(range(256)) * 300)
            data = await exported(store, log.id)
            new = await imported(other, data, piece)
            there = await other.open(new)
            assert there.id != log.id
            assert there.foreign
            assert there.record.title == "mine"
            assert there.record.tags == ("a",)
            assert await there.blobs.get(key) == bytes(range(256)) * 300
            copy = await there.open_session(new)
            assert elsewhere(await all_items(copy), new) == elsewhere(
                await all_items(session), log.id
            )
            assert copy.state.head.grants == ()
            assert copy.state.queue == {}
            assert await listed(other) == [new]

    trio.run(main)


async def test_any_tar_opens_an_archive(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "hello")
    await log.blobs.put(b"x")
    data = await exported(memory_store, log.id)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        names = archive.getnames()
    assert names[0] == "manifest.json"
    assert names[1:3] == ["streams/main/000001.jsonl", "streams/metadata/000001.jsonl"]


async def test_a_long_stream_comes_in_parts(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    for _ in range(6):
        await say(session, "x" * 400_000, "y" * 400_000)
    data = await exported(memory_store, log.id)
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        parts = [name for name in archive.getnames() if name.startswith("streams/main/")]
    assert len(parts) > 3
    new = await imported(memory_store, data)
    assert len(await all_items(await root_of(memory_store, new))) == 12


def packed(*members: tuple[str, bytes], kind: bytes = tarfile.REGTYPE) -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            info.type = kind if name != "manifest.json" else tarfile.REGTYPE
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def sized(name: str, size: int) -> bytes:
    """A member whose header tells a size of up to 88 bits, signed, in base 256."""
    header = bytearray(tarfile.TarInfo(name).tobuf(tarfile.USTAR_FORMAT))
    header[124:136] = bytes([0xFF if size < 0 else 0x80]) + (size % (1 << 88)).to_bytes(11, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return gzip.compress(gzip.decompress(packed(MANIFEST))[:1024] + header + bytes(8192))


MANIFEST = ("manifest.json", b'{"format": "vaala-conversation", "version": 1}')
MAIN = ("streams/main/000001.jsonl", b'{"t":"x"}\n')
METADATA = ("streams/metadata/000001.jsonl", b'{"t":"x"}\n')


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cut off"),
        (b"no gzip at all", "not an archive"),
        (packed(MAIN), "manifest"),
        (packed(("manifest.json", b"{}")), "says something else"),
        (packed(("manifest.json", b"[")), "manifest.json"),
        (packed(("manifest.json", MANIFEST[1].replace(b"1", b"2"))), "upgrade vaala"),
        (packed(MANIFEST), "no stream"),
        (packed(MANIFEST, MAIN), "no stream 'metadata'"),
        (packed(MANIFEST, MAIN, METADATA)[:-60], "cut off"),
        (packed(MANIFEST, ("/etc/passwd", b"x")), "does not belong"),
        (packed(MANIFEST, ("streams/../../000001.jsonl", b"{}")), "does not belong"),
        (packed(MANIFEST, ("blobs/../../x", b"x")), "does not belong"),
        (packed(MANIFEST, ("blobs/..", b"x")), "cannot be a name"),
        (packed(MANIFEST, ("blobs/.hidden", b"x")), "cannot be a name"),
        (packed(MANIFEST, ("streams/../000001.jsonl", b"{}")), "cannot be a name"),
        (packed(MANIFEST, ("streams/main/000002.jsonl", b"{}")), "out of place"),
        (packed(MANIFEST, ("streams/building/000001.jsonl", b"{}")), "out of place"),
        (packed(MANIFEST, MAIN, MAIN), "out of place"),
        (packed(MANIFEST, ("streams/main/000001.jsonl", b"[]\n")), "no JSON object"),
        (packed(MANIFEST, ("streams/main/000001.jsonl", b"{\n")), "an entry of the stream"),
        (packed(MANIFEST, ("blobs/a", b"x"), ("blobs/a", b"y")), "twice"),
        (packed(MANIFEST, MANIFEST), "second manifest"),
        (sized("blobs/a", -600), "-600 bytes"),
        (sized("streams/main/000001.jsonl", -600), "-600 bytes"),
        (sized("streams/main/000001.jsonl", 1 << 70), "at most"),
        (sized("blobs/a", 1 << 70), "cut off"),
        (packed(MANIFEST, ("blobs/a", b""), kind=tarfile.SYMTYPE), "no plain file"),
        (packed(MANIFEST, ("blobs/a", b""), kind=tarfile.LNKTYPE), "no plain file"),
        (packed(MANIFEST, ("blobs/a", b""), kind=tarfile.DIRTYPE), "no plain file"),
        (packed(MANIFEST, ("streams/main/000001.jsonl", b"x" * (5 << 20))), "at most"),
        (
            packed(MANIFEST, ("streams/main/000001.jsonl", b'{"a":"%b"}' % (b"x" * (1 << 20)))),
            "an entry of the stream",
        ),
    ],
)
async def test_a_bad_archive_is_refused_and_leaves_nothing(
    tmp_path: Path, data: bytes, why: str
) -> None:
    async with open_store(tmp_path) as store:
        before = files_below(tmp_path / "conversations")
        with pytest.raises(BadArchive, match=why):
            await imported(store, data)
        after = files_below(tmp_path / "conversations")
        assert {name for name in after if not name.startswith(".")} == {
            name for name in before if not name.startswith(".")
        }
        assert await listed(store) == []


async def test_an_archive_that_hides_its_origin_gains_nothing(memory_store: Store) -> None:
    session = await with_grants(memory_store)
    data = await exported(memory_store, session.session_id)
    file = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as old,
        tarfile.open(fileobj=file, mode="w:gz", format=tarfile.USTAR_FORMAT) as new,
    ):
        for member in old:
            source = old.extractfile(member)
            assert source is not None
            lines = [line for line in source.read().split(b"\n") if b'"origin"' not in line]
            info = tarfile.TarInfo(member.name)
            info.size = len(b"\n".join(lines))
            new.addfile(info, io.BytesIO(b"\n".join(lines)))
    copy = await root_of(memory_store, await imported(memory_store, file.getvalue()))
    assert copy.state.head.grants == ()
    assert copy.state.queue == {}


async def test_a_copied_directory_is_a_second_foreign_conversation(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        session = await with_grants(store)
        original = session.session_id
    root = tmp_path / "conversations"
    shutil.copytree(root / original, root / "by-hand")
    async with open_store(tmp_path) as store:
        log = await store.open("by-hand")
        assert log.foreign
        copy = await log.open_session("by-hand")
        assert copy.foreign
        assert copy.state.head.grants == ()
        assert copy.state.queue == {}
        assert {item.session_id for item in await all_items(copy)} == {"by-hand"}
        await say(copy, "mine now")
        new_home = (Location(executor="local", directory="/elsewhere"),)
        assert (await log.adopt(new_home)).locations == new_home
        assert not log.foreign
        await log.close()
        kept = await root_of(store, original)
        assert kept.state.head.grants
        assert kept.state.queue
        assert not (await store.open(original)).foreign
    async with open_store(tmp_path) as store:
        log = await store.open("by-hand")
        assert not log.foreign
        again = await log.open_session("by-hand")
        assert not again.foreign
        assert again.state.head.grants == ()
        assert again.state == copy.state


async def test_a_directory_moved_to_another_data_directory_is_foreign(tmp_path: Path) -> None:
    async with open_store(tmp_path / "one") as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    async with open_store(tmp_path / "two"):
        pass
    shutil.move(
        tmp_path / "one" / "conversations" / log.id, tmp_path / "two" / "conversations" / log.id
    )
    async with open_store(tmp_path / "two") as store:
        assert (await store.open(log.id)).foreign
    shutil.copytree(tmp_path / "two", tmp_path / "three")
    async with open_store(tmp_path / "three") as store:
        moved = await store.open(log.id)
        await moved.adopt((HOME,))
    async with open_store(tmp_path / "three") as store:
        assert not (await store.open(log.id)).foreign


async def test_a_copy_has_all_items_and_nothing_that_was_allowed(memory_store: Store) -> None:
    session = await with_grants(memory_store)
    new = await memory_store.copy(session.session_id)
    log = await memory_store.open(new)
    assert not log.foreign
    assert log.record.fork_parent is None
    copy = await log.open_session(new)
    assert copy.state.head.grants == ()
    assert copy.state.queue == {}
    assert elsewhere(await all_items(copy), new) == elsewhere(
        await all_items(session), session.session_id
    )


@settings(max_examples=15)
@given(st.integers(0, 10**9))
def test_a_fork_ends_with_the_step_of_the_item(seed: int) -> None:
    async def main() -> None:
        async with open_memory_store() as store:
            log, session = await begin(store)
            story = Story(seed, log.id)
            blocks: list[set[str]] = [set()]
            story.state = session.state
            for batch in story.batches(4):
                await session.append(batch)
                for entry in batch:
                    if entry["t"] == "item":
                        blocks[-1].add(entry["id"])
                    if ends_block(entry):
                        blocks.append(set())
            items = story.in_order
            for item in items[:: max(1, len(items) // 5)]:
                new = await store.fork(log.id, at=item.at)
                fork = await root_of(store, new)
                place = next(n for n, block in enumerate(blocks) if item.id in block)
                # What comes after the last border has not ended.
                kept = set[str]().union(*blocks[: min(place + 1, len(blocks) - 1)])
                expected = [one for one in items if one.id in kept]
                assert elsewhere(await all_items(fork), new) == elsewhere(expected, log.id)
                turn = fork.state.head.turn
                assert turn is not None
                assert turn.state != "running"
                assert fork.state.unsettled == []
                assert fork.state.queue == {}
                record = (await store.open(new)).record
                assert (record.fork_parent, record.title) == (log.id, log.record.title)

    trio.run(main)


async def test_a_fork_of_a_running_turn_ends_with_its_last_step(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    await say(session, "done")
    running = exchange("running", "half", at=3, number=77)[:4]
    await write(session, running)
    for at in (None, 4, 99):
        fork = await root_of(memory_store, await memory_store.fork(log.id, at=at))
        assert [item.at for item in await all_items(fork)] == [1, 2]
    with pytest.raises(BadRequest, match="no item"):
        await memory_store.fork(log.id, at=0)


async def test_what_has_no_step_yet_cannot_be_forked(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    with pytest.raises(Busy):
        await memory_store.fork(log.id)
    await write(session, exchange("running", "half")[:4])
    with pytest.raises(Busy, match="no step"):
        await memory_store.fork(log.id)
    with pytest.raises(NotFound):
        await memory_store.fork("nothing")


async def test_blobs_of_a_fork_are_shared_on_disk(tmp_path: Path) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        key = await log.blobs.put(b"large output")
        await say(session, "hello")
        new = await store.fork(log.id)
        one, other = (tmp_path / "conversations" / name / "blobs" / key for name in (log.id, new))
        assert one.samefile(other)
        await log.close()
        await store.delete(log.id)
        assert await (await store.open(new)).blobs.get(key) == b"large output"


async def test_a_fork_brings_the_children_that_were_spawned_by_then(memory_store: Store) -> None:
    log, session = await begin(memory_store)
    for number, name in ((1, "early"), (2, "late")):
        child = await log.create_session(
            SessionInfo(id=name, agent="a", created_at=1, settings=Settings(), parent=log.id)
        )
        await say(child, f"the task of {name}")
        await write(child, exchange("running", "half", at=3, number=9)[:4])
        call = {
            "t": "item", "kind": "tool_call", "id": f"call-{number}", "at": 10 * number + 2,
            "createdAt": 1, "turnId": f"turn-{number}", "step": 1, "name": "spawn_agent",
            "arguments": "{}", "state": "done",
            "details": {"type": "agent", "action": "spawn", "sessionId": name},
        }  # fmt: skip
        turn = exchange("go", "yes", at=10 * number, number=number)
        await write(session, [*turn[:4], call, *turn[4:]])
    new = await memory_store.fork(log.id, at=12)
    fork = await memory_store.open(new)
    assert await fork.session_ids() == (new, "early")
    early = await fork.open_session("early")
    assert [item.at for item in await all_items(early)] == [1, 2]
    assert set((await fork.open_session(new)).state.head.children) == {"early"}


async def test_a_copy_that_fails_half_way_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        conversations = tmp_path / "conversations"
        before = set(conversations.glob("[!.]*"))

        async def full(*_: object) -> None:
            raise OSError("no space")

        monkeypatch.setattr("vaala.dao.copying._Copy._metadata", full)
        with pytest.raises(OSError, match="no space"):
            await store.copy(log.id)
        assert set(conversations.glob("[!.]*")) == before
        assert await listed(store) == [log.id]


async def test_a_copy_that_a_crash_cut_off_is_removed_and_never_shown(tmp_path: Path) -> None:
    root = tmp_path / "conversations"
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    shutil.copytree(root / log.id, root / "half-made")
    line = b'{"t":"building","instance":"an earlier one"}'
    (root / "half-made" / "building.jsonl").write_bytes(make_line(1, 1, line))
    (tmp_path / "metadata.db").unlink()
    async with open_store(tmp_path) as store:
        with pytest.raises(NotFound, match="no conversation"):
            await store.open("half-made")
        await store.settled()
        assert await listed(store) == [log.id]
        assert not (root / "half-made").exists()
