"""What is kept of an output, and how it is cut."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from vaala_executors import Command, CutOutput, OutputCapture, Workspace


async def captured(data: bytes, piece: int = 1000) -> OutputCapture:
    capture = OutputCapture()
    for at in range(0, len(data), piece):
        await capture.add(data[at : at + piece])
    return capture


def check(cut: CutOutput, bytes_max: int) -> None:
    assert len((cut.head + cut.tail).encode()) <= bytes_max
    assert cut.bytes_total == cut.bytes_head + cut.bytes_omitted + cut.bytes_tail


LINES = b"".join(b"line %d\n" % number for number in range(100_000))


@pytest.mark.parametrize("size", [100, 5_000, 60_000, 500_000])
async def test_cut_at_line_borders_with_exact_numbers(size: int) -> None:  # D4-4
    capture = await captured(LINES, 4099)
    cut = capture.cut(size)
    check(cut, size)
    assert cut.head.startswith("line 0\n")
    assert cut.head.endswith("\n")
    assert cut.tail.startswith("line ")
    assert cut.tail.endswith("line 99999\n")
    assert LINES.startswith(cut.head.encode())
    assert LINES.endswith(cut.tail.encode())
    shown = cut.head.count("\n") + cut.tail.count("\n")
    assert cut.newlines_omitted == 100_000 - shown
    assert cut.bytes_omitted == len(LINES) - len(cut.head) - len(cut.tail)


async def test_the_last_line_is_seen() -> None:  # D4-3
    capture = await captured(b"test ok\n" * 5000 + b"2 failed")
    cut = capture.cut(1000)
    assert cut.tail.endswith("test ok\n2 failed")
    check(cut, 1000)


async def test_short_output_is_whole() -> None:
    cut = (await captured(b"\x1b[1ma\r\nb")).cut(100)
    assert (cut.head, cut.tail, cut.bytes_omitted, cut.newlines_omitted) == ("a\nb", "", 0, 0)
    assert (await captured(b"")).cut(100).head == ""


async def test_text_may_be_longer_than_its_bytes() -> None:
    capture = await captured(b"\xff" * 3000)
    cut = capture.cut(3000)
    check(cut, 3000)
    assert set(cut.head + cut.tail) == {"\ufffd"}
    assert cut.bytes_omitted > 1500


async def test_one_giant_line_is_cut_inside_at_characters() -> None:
    cut = (await captured("数".encode() * 1_000_000, 65_537)).cut(10_000)
    check(cut, 10_000)
    assert len(cut.head) > 1000
    assert len(cut.tail) > 1000
    assert set(cut.head + cut.tail) == {"数"}


async def test_a_long_progress_line_is_one_short_line() -> None:
    bar = b"".join(b"%d%%\r" % number for number in range(20_000))
    assert (await captured(b"start\n" + bar + b"\nend\n")).cut(200).head == "start\n19999%\nend\n"


@given(
    st.lists(st.binary(max_size=40) | st.sampled_from([b"\n", "数".encode() * 5, b"\x1b[1m"])),
    st.integers(0, 80), st.integers(1, 30), st.integers(1, 30),
)  # fmt: skip
def test_numbers_are_exact_whatever_comes(
    pieces: list[bytes], size: int, head: int, tail: int
) -> None:
    async def capture_and_cut() -> None:
        capture = OutputCapture(head_bytes=head, tail_bytes=tail)
        for piece in pieces:
            await capture.add(piece)
        cut = capture.cut(size)
        check(cut, size)
        data = b"".join(pieces)
        assert cut.bytes_total == len(data)
        middle = data[cut.bytes_head : len(data) - cut.bytes_tail]
        assert cut.newlines_omitted == middle.count(b"\n")
        for offset in (0, head, len(data) // 2):
            kept, begin = capture.since(offset)
            assert data[begin : begin + len(kept)] == kept

    trio.run(capture_and_cut)


async def test_memory_is_bounded_and_the_sink_has_it_all() -> None:
    stored: list[bytes] = []

    async def sink(data: bytes) -> None:
        stored.append(data)

    capture = OutputCapture(sink=sink, head_bytes=100, tail_bytes=100)
    for _ in range(500):
        await capture.add(b"0123456789" * 7)
    assert b"".join(stored) == b"0123456789" * 3500
    assert len(capture.since(0)[0]) <= 300
    assert capture.cut(1000).bytes_in_sink == 35_000
    assert capture.note == ""


async def test_the_sink_has_a_cap() -> None:
    stored: list[bytes] = []

    async def sink(data: bytes) -> None:
        stored.append(data)

    capture = OutputCapture(sink=sink, sink_bytes_max=25)
    for _ in range(10):
        await capture.add(b"0123456789")
    assert b"".join(stored) == b"0123456789" * 2 + b"01234"
    cut = capture.cut(1000)
    assert (cut.bytes_in_sink, cut.note) == (25, "only the first 25 bytes were stored")
    assert len(cut.head) == 100


async def test_a_full_disk_costs_the_rest_of_the_blob_and_nothing_else() -> None:
    calls = itertools.count()

    async def sink(_data: bytes) -> None:
        if next(calls) == 2:
            raise OSError(28, "No space left on device")

    capture = OutputCapture(sink=sink)  # D4-5
    for _ in range(5):
        await capture.add(b"0123456789")
    cut = capture.cut(1000)
    assert cut.head == "0123456789" * 5
    assert cut.bytes_in_sink == 20
    assert cut.note.startswith("only the first 20 bytes were stored: ")
    assert "No space left" in cut.note
    assert next(calls) == 3, "it was not asked again"


async def test_reading_on_from_an_offset() -> None:
    capture = OutputCapture(head_bytes=10, tail_bytes=10)
    await capture.add(b"0123456")
    assert capture.since(0) == (b"0123456", 0)
    await capture.add(b"789abc")
    assert capture.since(7) == (b"789abc", 7)
    assert capture.since(13) == (b"", 13)
    await capture.add(b"x" * 100)
    data, begin = capture.since(13)
    assert data == b"x" * 10
    assert begin + len(data) == capture.bytes_total
    assert capture.since(4) == (b"456789", 4)


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks into /proc")
async def test_huge_output_in_flat_memory(workspace: Workspace) -> None:
    capture = OutputCapture()  # D4-1
    before = most = resident_bytes()
    async with workspace.start(Command(shell="yes 0123456789abcdef | head -c 100M")) as process:
        async for chunk in process.output():
            assert len(chunk) <= 65_536
            await capture.add(chunk)
            most = max(most, resident_bytes())
    assert capture.bytes_total == 100 * 1024 * 1024
    assert most - before < 10 << 20
    cut = capture.cut(20_000)
    check(cut, 20_000)
    assert cut.tail.endswith("0123456789abcdef\n01")


async def test_endless_output_delays_no_timer(workspace: Workspace) -> None:
    """Measured in the time that this thread ran: a busy machine is no fault of ours."""
    capture = OutputCapture()  # D4-2
    busy_s = 0.0

    async def watch() -> None:
        nonlocal busy_s
        while True:
            before = time.thread_time()
            await trio.sleep(0.01)
            busy_s = max(busy_s, time.thread_time() - before)

    async with trio.open_nursery() as nursery:
        nursery.cancel_scope.deadline = trio.current_time() + 20
        nursery.start_soon(watch)
        async with workspace.start(Command(shell="yes")) as process:
            with trio.move_on_after(0.5) as scope:
                async for chunk in process.output():
                    await capture.add(chunk)
        assert not nursery.cancel_scope.cancel_called
        nursery.cancel_scope.cancel()
    assert scope.cancelled_caught
    assert busy_s < 0.25
    assert capture.bytes_total > 1 << 20  # D3-4: what came so far is there
