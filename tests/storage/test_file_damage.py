"""Files of a log that a crash, a disk or a hand has changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from vaala_storage import Entry, NotFound, Page
from vaala_storage.file import open_file_log
from vaala_storage.file.lines import encode_body, make_line
from vaala_storage.limits import BATCH_BYTES_MAX, TORN_FILES_MAX

NULS = bytes(300)
PAD = {"pad": "x" * 500}


def line(first: int, count: int = 1) -> bytes:
    entries: list[Entry] = [{"n": n, **PAD} for n in range(first, first + count)]
    return make_line(first, count, encode_body(entries, "test"))


def stream_file(root: Path, content: bytes) -> Path:
    (root / "p").mkdir()
    path = root / "p" / "s.jsonl"
    path.write_bytes(content)
    return path


def seqs(page: Page) -> list[int]:
    for stored in page.entries:
        assert stored.entry["n"] == stored.seq
    return [stored.seq for stored in page.entries]


def gaps(page: Page) -> list[tuple[int | None, int | None]]:
    return [(damage.first, damage.last) for damage in page.damage]


@pytest.mark.parametrize(
    "torn",
    [
        b'{"seq":41,"ty',  # G1-1
        b'{"seq":41,"ty\n',
        b'{"seq":41,"ty\n\n',  # G1-2
        line(41)[:-1],
        line(41)[:-1] + b" ",
        NULS,
        NULS + b"\n",
        b'{"seq":41,"n":1,"crc":1,"e":[{}]}\n',
        b"[" * 3_000_000,
    ],
    ids=[
        *("cut", "ended", "blank-follows", "no-line-feed", "space-for-line-feed"),
        *("nuls", "nuls-ended", "bad-checksum", "long"),
    ],
)
async def test_a_torn_end_is_cut_and_kept(tmp_path: Path, torn: bytes) -> None:
    whole = b"".join(line(n) for n in range(1, 41))
    path = stream_file(tmp_path, whole + torn)
    async with open_file_log(tmp_path) as log:
        page = await log.read("p", "s")
        assert seqs(page) == list(range(1, 41))
        last, damage = await log.recover("p", "s")
        assert last == 40
        assert [(d.first, d.last) for d in damage] == [(41, None)]
        kept = tmp_path / "p" / f"s.jsonl.torn-{len(whole)}-0"
        assert kept.name in damage[0].detail
        assert kept.read_bytes() == torn
        assert path.read_bytes() == whole
        assert await log.append("p", "s", [{"n": 41}], expected=40) == 41
    assert path.read_bytes().startswith(whole)
    async with open_file_log(tmp_path) as log:
        assert await log.recover("p", "s") == (41, ())
        page = await log.read("p", "s")
        assert seqs(page) == list(range(1, 42))
        assert page.damage == ()


async def test_the_first_append_cuts_by_itself(tmp_path: Path) -> None:
    stream_file(tmp_path, line(1) + line(2)[:50])  # G1-1
    async with open_file_log(tmp_path) as log:
        assert await log.append("p", "s", [{"n": 2}], expected=1) == 2
        assert seqs(await log.read("p", "s")) == [1, 2]


async def test_torn_ends_are_bounded_in_number(tmp_path: Path) -> None:
    path = stream_file(tmp_path, line(1))
    for attempt in range(TORN_FILES_MAX + 3):
        with path.open("ab") as file:
            file.write(b"torn %d" % attempt)
        async with open_file_log(tmp_path) as log:
            assert (await log.recover("p", "s"))[0] == 1
    kept = sorted(path.parent.glob("*.torn-*"))
    assert len(kept) == TORN_FILES_MAX
    assert path.parent.joinpath(f"s.jsonl.torn-{len(line(1))}-18").read_bytes() == b"torn 18"


@pytest.mark.parametrize(
    ("bad", "missing"),
    [
        (NULS + line(4)[300:], (4, 4)),  # G1-3
        (NULS + line(4), None),  # G1-3
        (line(4, 3).replace(b"xxx", b"x\0x", 1), (4, 6)),
        (b"", (4, 4)),
        (b"\n \r\n" + line(4), None),
        (b"not ours\n" + line(4), (None, None)),
        (b"z" * (BATCH_BYTES_MAX * 3) + b"\n", (4, 4)),
        (line(4)[:-20] + b"\n" + b"?\n" * 3, (4, 4)),
    ],
    ids=["nuls-over", "nuls-before", "flipped", "hole", "blank", "foreign", "huge", "several"],
)
async def test_damage_in_the_middle_never_stops_a_read(
    tmp_path: Path, bad: bytes, missing: tuple[int | None, int | None] | None
) -> None:
    after = 7 if missing == (4, 6) else 5
    content = line(1) + line(2, 2) + bad + b"".join(line(n) for n in range(after, 400))
    path = stream_file(tmp_path, content)
    async with open_file_log(tmp_path) as log:
        forward = await log.read("p", "s")
        backward = await log.read("p", "s", reverse=True)
        lost = missing not in (None, (None, None))
        wanted = [1, 2, 3, *range(after, 400)] if lost else list(range(1, 400))
        assert seqs(forward) == wanted
        assert seqs(backward) == wanted[::-1]
        assert gaps(forward) == gaps(backward) == ([missing] if missing else [])
        # Nothing is rewritten, and the stream goes on.
        assert await log.recover("p", "s") == (399, ())
        assert path.read_bytes() == content
        assert await log.append("p", "s", [{"n": 400}], expected=399) == 400


async def test_a_gap_is_told_on_the_page_that_meets_it(tmp_path: Path) -> None:
    stream_file(tmp_path, line(1) + line(2) + b"rot\n" + line(5) + line(6))
    async with open_file_log(tmp_path) as log:
        page = await log.read("p", "s", limit=2)
        assert (seqs(page), gaps(page), page.more) == ([1, 2], [], True)
        page = await log.read("p", "s", after=2, limit=1)
        assert (seqs(page), gaps(page), page.more) == ([5], [(3, 4)], True)
        assert "rot" in page.damage[0].detail
        page = await log.read("p", "s", after=3, before=5)
        assert (seqs(page), gaps(page), page.more) == ([], [(4, 4)], False)
        page = await log.read("p", "s", before=6, reverse=True, limit=1)
        assert (seqs(page), gaps(page), page.more) == ([5], [], True)
        page = await log.read("p", "s", before=5, reverse=True)
        assert (seqs(page), gaps(page), page.more) == ([2, 1], [(3, 4)], False)
        page = await log.read("p", "s", before=4, after=1, reverse=True)
        assert (seqs(page), gaps(page), page.more) == ([2], [(3, 3)], False)


async def test_a_missing_beginning_is_a_gap(tmp_path: Path) -> None:
    stream_file(tmp_path, b"rot\n" + line(3))
    async with open_file_log(tmp_path) as log:
        assert gaps(await log.read("p", "s")) == [(1, 2)]
        assert gaps(await log.read("p", "s", reverse=True)) == [(1, 2)]


async def test_a_rotten_end_is_told_by_readers(tmp_path: Path) -> None:
    stream_file(tmp_path, line(1) + line(2).replace(b'"n":2', b'"n":9'))
    async with open_file_log(tmp_path, read_only=True) as log:
        for reverse in (False, True):
            page = await log.read("p", "s", reverse=reverse)
            assert (seqs(page), gaps(page)) == ([1], [(2, None)])
            assert "checksum" in page.damage[0].detail


async def test_a_repeated_sequence_is_read_once(tmp_path: Path) -> None:
    stream_file(tmp_path, line(1) + line(2) + line(2) + line(2, 2) + line(4))
    async with open_file_log(tmp_path) as log:
        assert seqs(await log.read("p", "s")) == [1, 2, 3, 4]
        assert seqs(await log.read("p", "s", reverse=True)) == [4, 3, 2, 1]


async def test_a_hung_write_that_lands_late_takes_nothing_back(tmp_path: Path) -> None:
    """It was given up, its sequence given to another entry, and then it came after all."""
    late = line(3).replace(b'"n":3,"pad":"x', b'"n":7,"pad":"x')
    late = make_line(3, 1, late[late.index(b"[") + 1 : late.rindex(b"]")])
    stream_file(tmp_path, line(1) + line(2) + b"rot\n" + line(3) + line(4, 2) + late)
    async with open_file_log(tmp_path) as log:
        assert await log.last("p", "s") == 5
        assert await log.recover("p", "s") == (5, ())
        assert await log.append("p", "s", [{"n": 6}], expected=5) == 6
        for limit in (1, 2, 100):
            forward: list[int] = []
            while len(forward) < 6:
                after = forward[-1] if forward else 0
                forward += seqs(await log.read("p", "s", after=after, limit=limit))
            backward: list[int] = []
            while len(backward) < 6:
                before = backward[-1] if backward else None
                backward += seqs(await log.read("p", "s", before=before, limit=limit, reverse=True))
            assert forward == backward[::-1] == [1, 2, 3, 4, 5, 6]
        assert gaps(await log.read("p", "s", reverse=True)) == [(None, None)]


@pytest.mark.parametrize(
    ("content", "last"), [(b"", 0), (b"\n", 0), (line(1), 1)], ids=["empty", "blank", "header"]
)
async def test_empty_and_header_only(tmp_path: Path, content: bytes, last: int) -> None:
    stream_file(tmp_path, content)  # G1-4
    async with open_file_log(tmp_path) as log:
        page = await log.read("p", "s")
        assert seqs(page) == list(range(1, last + 1))
        assert (page.more, page.damage) == (False, ())
        assert await log.last("p", "s") == last
        assert await log.append("p", "s", [{"n": last + 1}], expected=last) == last + 1
        assert seqs(await log.read("p", "s")) == list(range(1, last + 2))


async def test_raw_unicode_line_ends_in_a_file_made_elsewhere(tmp_path: Path) -> None:
    text = "a\u2028b\u2029c\u0085d\u000be"  # G1-5
    body = b'{"n":1,"text":"%b"}' % text.replace("\u000b", "\\u000b").encode()
    stream_file(tmp_path, make_line(1, 1, body) + line(2))
    async with open_file_log(tmp_path) as log:
        page = await log.read("p", "s")
        assert seqs(page) == [1, 2]
        assert page.entries[0].entry["text"] == text


async def test_every_page_of_a_long_stream_is_found_by_bisection(tmp_path: Path) -> None:
    batches = [1, 3, 40, 2, 1, 1, 17, 5]
    content, first = bytearray(), 1
    for index in range(600):
        count = batches[index % len(batches)]
        content += line(first, count)
        if index % 50 == 7:
            content += b"rot\n"
        first += count
    stream_file(tmp_path, bytes(content))
    assert len(content) > 2_000_000
    async with open_file_log(tmp_path) as log:
        for at in range(1, first, 97):
            assert seqs(await log.read("p", "s", after=at - 1, limit=3)) == [
                n for n in (at, at + 1, at + 2) if n < first
            ]
            assert seqs(await log.read("p", "s", before=at, limit=2, reverse=True)) == [
                n for n in (at - 1, at - 2) if n > 0
            ]


async def test_readers_beside_a_writer(tmp_path: Path) -> None:
    async with (
        open_file_log(tmp_path) as writer,
        open_file_log(tmp_path, read_only=True) as reader,
    ):
        await writer.create("p", {"s": []})
        path = tmp_path / "p" / "s.jsonl"
        for n in range(1, 6):
            await writer.append("p", "s", [{"n": n}], expected=n - 1)
            assert seqs(await reader.read("p", "s")) == list(range(1, n + 1))
        with path.open("ab") as file:
            file.write(line(6)[:-40])  # as if the next line were being written
        before = path.read_bytes()
        page = await reader.read("p", "s", reverse=True)
        assert (seqs(page), page.damage) == ([5, 4, 3, 2, 1], ())
        assert await reader.last("p", "s") == 5
        assert path.read_bytes() == before


async def test_readers_make_nothing(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    async with open_file_log(missing, read_only=True) as log:
        assert (await log.paths()).paths == ()
        with pytest.raises(NotFound):
            await log.read("p", "s")
    assert not missing.exists()
