"""What was written once is read for ever; what a newer version wrote is read and never changed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.dao.conversing import begin, exchange, files_below, say, write
from vaala.dao.entries import FORMAT_MAJOR, Entry
from vaala.dao.errors import NewerFormat
from vaala.dao.state import SessionState
from vaala.dao.store import ConversationLog, Store, open_store
from vaala_protocol.base import decode, encode, to_json
from vaala_protocol.items import KNOWN_KINDS, Private, Reasoning
from vaala_storage.file.lines import make_line

GOLDEN = Path(__file__).parent / "golden"
FORMATS = sorted(path.name for path in GOLDEN.iterdir())
CHILD = "019ad2c1-7d2e-7c3a-9f10-0000000000c1"


def expected_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = decode((GOLDEN / name / "expected.json").read_bytes())
    return found


def entries_of(file: Path) -> list[Entry]:
    return [entry for line in file.read_bytes().split(b"\n") if line for entry in decode(line)["e"]]


def without(fields: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in names}


def test_there_is_a_golden_conversation_of_this_format() -> None:
    assert [f"format-{major}" for major in range(1, FORMAT_MAJOR + 1)] == FORMATS


def test_the_golden_conversation_has_every_kind_of_item() -> None:
    kinds = {item.get("kind") for item in expected_of(f"format-{FORMAT_MAJOR}")["items"]}
    assert kinds >= KNOWN_KINDS | {"unknown"}


@pytest.mark.parametrize("name", FORMATS)
def test_the_fold_of_a_golden_stream_is_as_it_was(name: str) -> None:
    entries = entries_of(GOLDEN / name / "conversation" / "main.jsonl")
    state = SessionState("s")
    for entry in entries:
        state.apply(entry)
    found = decode_again(state.checkpoint())
    expected = expected_of(name)["checkpoint"]
    assert found["major"] == expected["major"]
    # Ids of the session are filled in when it is read.
    assert without(found["head"], "commands") == without(expected["head"], "commands")


def decode_again(value: object) -> dict[str, Any]:
    found: dict[str, Any] = decode(encode(value))
    return found


@pytest.mark.parametrize("name", FORMATS)
async def test_a_golden_conversation_opens_and_goes_on(tmp_path: Path, name: str) -> None:
    expected = expected_of(name)
    async with open_store(tmp_path) as store:
        shutil.copytree(GOLDEN / name / "conversation", tmp_path / "conversations" / "golden")
        log = await store.open("golden")
        assert log.foreign
        assert log.read_only is None
        # A foreign directory has no row yet, so the time of its last change is not known.
        assert without(decode_again(log.record), "id", "updatedAt") == without(
            expected["record"], "id", "updatedAt"
        )
        assert await log.blobs.get(expected["blob"]) == b"\x89PNG not really"
        assert await log.session_ids() == ("golden", CHILD)
        session = await log.open_session("golden")
        assert session.damage == ()
        page = await session.items(limit=1000)
        found = [decode_again(item) for item in page.items]
        assert [without(item, "sessionId") for item in found] == [
            without(item, "sessionId") for item in expected["items"]
        ]
        child = await log.open_session(CHILD)
        assert child.state.info.agent == "tester"
        await say(session, "go on")
        row = await store.get("golden")
        assert row is not None
        assert row.info.title == expected["row"]["title"]
        assert row.sessions == 2


async def test_what_a_provider_gave_comes_back_exactly(memory_store: Store) -> None:
    data: dict[str, Any] = {"signature": "Zm9v\u2028", "n": 1.5, "deep": [None, True, {"a": []}]}
    private = Private(provider="p", api="a", model="m", data=data)
    _, session = await begin(memory_store)
    item = Reasoning(
        id="r", at=1, created_at=1, session_id=session.session_id, text="x", private=private
    )
    entry = {"t": "item", **{k: v for k, v in to_json(item).items() if k != "sessionId"}}
    await write(session, [entry])
    assert (await session.items()).items == (item,)


NEWER: Entry = {"t": "format", "major": FORMAT_MAJOR + 1, "minor": 0}


async def with_newer(root: Path, stream: str, entry: Entry) -> str:
    """Make a conversation to which a newer version has added an entry."""
    async with open_store(root) as store:
        log, session = await begin(store)
        await say(session, "hello")
        await log.close()
    file = root / "conversations" / log.id / f"{stream}.jsonl"
    first = 3 if stream == "metadata" else session.seq + 1
    file.write_bytes(file.read_bytes() + make_line(first, 1, encode(entry)))
    return log.id


async def reopened(store: Store, conversation_id: str) -> ConversationLog:
    log = await store.open(conversation_id)
    session = await log.open_session(conversation_id)
    assert len((await session.items()).items) == 2
    with pytest.raises(NewerFormat, match="newer vaala"):
        await session.append(exchange("no", "no", at=9, number=9))
    return log


@pytest.mark.parametrize(
    "entry",
    [NEWER, {"t": "checkpoint", "major": FORMAT_MAJOR + 1, "minor": 3, "head": "of a new kind"}],
)
async def test_a_session_of_a_newer_major_is_read_only_and_says_so(
    tmp_path: Path, entry: Entry
) -> None:
    conversation_id = await with_newer(tmp_path, "main", entry)
    async with open_store(tmp_path) as store:
        before = files_below(tmp_path / "conversations" / conversation_id)
        log = await reopened(store, conversation_id)
        await log.close()
        assert files_below(tmp_path / "conversations" / conversation_id) == before


async def test_a_conversation_of_a_newer_major_is_read_only_and_says_so(tmp_path: Path) -> None:
    entry = {"t": "conversation", "createdAt": 1, "major": FORMAT_MAJOR + 1, "title": "new"}
    conversation_id = await with_newer(tmp_path, "metadata", entry)
    async with open_store(tmp_path) as store:
        before = files_below(tmp_path / "conversations" / conversation_id)
        log = await reopened(store, conversation_id)
        assert "upgrade vaala" in (log.read_only or "")
        assert log.record.title == "new"
        with pytest.raises(NewerFormat):
            await log.update(title="old")
        with pytest.raises(NewerFormat):
            await log.blobs.put(b"x")
        await log.close()
        assert files_below(tmp_path / "conversations" / conversation_id) == before


async def test_a_newer_minor_is_written_on_and_says_its_own(tmp_path: Path) -> None:
    entry = {"t": "format", "major": FORMAT_MAJOR, "minor": 99}
    conversation_id = await with_newer(tmp_path, "main", entry)
    async with open_store(tmp_path) as store:
        log = await store.open(conversation_id)
        session = await log.open_session(conversation_id)
        await say(session, "fine")
        again = await log.open_session(conversation_id)
        assert again.state.format == (FORMAT_MAJOR, 99)


async def test_an_older_format_is_told_apart_before_the_next_entry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "old")
        await log.close()
    for module in ("entries", "session_log", "metadata", "conversation_log", "state"):
        monkeypatch.setattr(f"vaala.dao.{module}.FORMAT_MINOR", 7)
    async with open_store(tmp_path) as store:
        log = await store.open(log.id)
        session = await log.open_session(log.id)
        await say(session, "new")
        await log.update(title="new")
        await log.close()
    told = entries_of(tmp_path / "conversations" / log.id / "main.jsonl")
    formats = [(n, e["minor"]) for n, e in enumerate(told) if e["t"] == "format"]
    assert formats == [(0, 0), (9, 7)]
    metadata = entries_of(tmp_path / "conversations" / log.id / "metadata.jsonl")
    assert [e.get("minor") for e in metadata] == [0, 0, 7, 7]
