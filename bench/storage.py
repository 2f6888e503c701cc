"""What the file log costs beside the disk itself: appends, and pages of a long stream.

    python bench/storage.py                      every section
    python bench/storage.py append --rounds 40   appends to 1, 8 and 64 streams, against raw
    python bench/storage.py tail --megabytes 50  pages of a long stream

Raw is one thread doing write and fdatasync round robin over as many files of its own, in the same
directory and the same run. A disk's speed swings within a second (and with what else the machine
does), so raw and ours take turns in short rounds and the figures are over all of them. `--dir`
must be on the disk that is to be measured.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import trio

from vaala_storage.file import FileLog, open_file_log
from vaala_storage.file.lines import encode_body, make_line
from vaala_storage.file.system import SYSTEM_FILES

PATH = "bench"
ENTRY = {"type": "item", "id": "019ad2c1-7d2e-7c3a-9f10-2d3b4c5d6e7f", "text": "x" * 200}
BODY = encode_body([ENTRY], PATH)
APPENDS_PER_ROUND = 128
PAGE_ENTRIES = 50


@dataclass(slots=True)
class Times:
    """What all rounds of one contender took."""

    wall_s: float = 0.0
    each_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return len(self.each_s) / self.wall_s

    def percentile_ms(self, percent: int) -> float:
        return statistics.quantiles(self.each_s, n=100)[percent - 1] * 1000


@dataclass(slots=True)
class Writers:
    """Tasks that append to one stream, each waiting for its own append before the next one."""

    log: FileLog
    stream: str
    count: int
    last: int = 0

    async def run(self, appends: int, times: Times) -> None:
        async with trio.open_nursery() as nursery:
            for _ in range(self.count):
                nursery.start_soon(self._write, appends // self.count, times)

    async def _write(self, appends: int, times: Times) -> None:
        for _ in range(appends):
            begun = time.perf_counter()
            expected, self.last = self.last, self.last + 1
            await self.log.append(PATH, self.stream, [ENTRY], expected=expected)
            times.each_s.append(time.perf_counter() - begun)


def raw_round(files: Sequence[int], appends: int, times: Times) -> None:
    line = make_line(1_000_000, 1, BODY)
    wall = time.perf_counter()
    for index in range(appends):
        begun = time.perf_counter()
        os.write(files[index % len(files)], line)
        SYSTEM_FILES.sync_data(files[index % len(files)])
        times.each_s.append(time.perf_counter() - begun)
    times.wall_s += time.perf_counter() - wall


async def our_round(writers: Sequence[Writers], appends: int, times: Times) -> None:
    wall = time.perf_counter()
    async with trio.open_nursery() as nursery:
        for each in writers:
            nursery.start_soon(each.run, appends // len(writers), times)
    times.wall_s += time.perf_counter() - wall


async def compare(log: FileLog, root: Path, rounds: int, streams: int, waiting: int) -> None:
    """Let raw and ours take turns over ``streams`` files, and print the row."""
    names = [f"s{streams}x{waiting}-{index}" for index in range(streams)]
    writers = [Writers(log, name, waiting) for name in names]
    files = [SYSTEM_FILES.open_append(f"{root}/raw-{name}", create=True) for name in names]
    raw, ours = Times(), Times()
    try:
        raw_round(files, streams, Times())
        await our_round(writers, streams * waiting, Times())  # makes and opens the files
        for _ in range(rounds):
            raw_round(files, APPENDS_PER_ROUND, raw)
            await our_round(writers, APPENDS_PER_ROUND, ours)
    finally:
        for file in files:
            os.close(file)
    print(
        f"{streams:>7}{waiting:>8}{raw.rate:>9.0f}{ours.rate:>8.0f}{ours.rate / raw.rate:>7.2f}"
        f"{raw.percentile_ms(50):>11.3f}{ours.percentile_ms(50):>8.3f}"
        f"{raw.percentile_ms(99):>11.2f}{ours.percentile_ms(99):>8.2f}",
        flush=True,
    )


async def append_section(root: Path, options: argparse.Namespace) -> None:
    print(f"appends of one entry ({len(BODY)} bytes), ms from call to durable")
    print("                 per second             p50 ms             p99 ms")
    print("streams waiting      raw    ours  ratio        raw    ours        raw    ours")
    async with open_file_log(root) as log:
        await log.create(PATH, {"metadata": []})
        for streams, waiting in ((1, 1), (8, 1), (64, 1), (1, 8)):
            await compare(log, root, options.rounds, streams, waiting)


def write_long_stream(directory: Path, size: int) -> int:
    """Write a stream of ``size`` bytes without syncs and return its last sequence."""
    directory.mkdir(parents=True)
    last = written = 0
    with (directory / "long.jsonl").open("wb", buffering=1 << 20) as file:
        while written < size:
            written += file.write(make_line(last + 1, 1, BODY))
            last += 1
    return last


async def median_ms(call: Callable[[], Awaitable[object]]) -> float:
    times: list[float] = []
    for _ in range(21):
        begun = time.perf_counter()
        await call()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1000


async def tail_section(root: Path, options: argparse.Namespace) -> None:
    last = write_long_stream(root / PATH, options.megabytes * 1_000_000)
    print(f"pages of {PAGE_ENTRIES} out of {last} entries ({options.megabytes} MB), median ms")
    async with open_file_log(root, read_only=True) as log:

        async def page(after: int | None, before: int | None, reverse: bool) -> None:
            found = await log.read(
                PATH, "long", after=after, before=before, limit=PAGE_ENTRIES, reverse=reverse
            )
            assert len(found.entries) == PAGE_ENTRIES, found

        print(f"  the last ones     {await median_ms(lambda: page(None, None, True)):8.2f}")
        print(f"  before the middle {await median_ms(lambda: page(None, last // 2, True)):8.2f}")
        print(f"  after the middle  {await median_ms(lambda: page(last // 2, None, False)):8.2f}")
        print(f"  the first ones    {await median_ms(lambda: page(None, None, False)):8.2f}")


SECTIONS = {"append": append_section, "tail": tail_section}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="append | tail")
    parser.add_argument("--dir", default=".", help="where to write: its disk is measured")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--megabytes", type=int, default=1000, help="length of the long stream")
    options = parser.parse_args()
    for name in options.sections or SECTIONS:
        with tempfile.TemporaryDirectory(prefix="bench-storage-", dir=options.dir) as root:
            trio.run(SECTIONS[name], Path(root), options)


if __name__ == "__main__":
    main()
