"""What lists, searches and openings cost with many conversations and with long ones.

    python bench/index.py                           20,000 conversations
    python bench/index.py --conversations 100000
    python bench/index.py --items 500000            a longer long conversation

The conversations are written unsynced, straight in the format of the log; the index is then built
from them as at the first start without one. Goals: a page of the list and a search under 50 ms,
the opening of a conversation independent of its length, at most 50 KB for an open one.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import trio

from vaala.dao.conversation_log import metadata_start
from vaala.dao.data_dir import DataDir
from vaala.dao.entries import Entry, format_entry, item_entry, origin_entry, session_entry
from vaala.dao.limits import CHECKPOINT_AFTER_BYTES_MIN
from vaala.dao.metadata import metadata_of, origin_hash
from vaala.dao.state import SessionState
from vaala.dao.store import ListQuery, Store, open_store
from vaala_protocol.base import encode
from vaala_protocol.content import TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, Location, SessionInfo
from vaala_storage.file.lines import make_line, make_lines

START = 1_790_000_000_000
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "no", "pi", "ru", "sa", "te", "vo", "zu")
CJK = ("修复", "登录", "错误", "测试", "文件", "搜索")
ROUNDS = 200
IDLE_MAX = 10_000


class Words:
    """Texts with common words, rare words and some Chinese, the same for each seed."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        count = len(SYLLABLES)
        self._words = [
            SYLLABLES[n % count] + SYLLABLES[n // count % count] + SYLLABLES[n // count**2 % count]
            for n in range(count**3)
        ]

    def text(self, length: int) -> str:
        # A power of a uniform number: few words are frequent, most are rare.
        picks = (int(len(self._words) * self.random.random() ** 3) for _ in range(length))
        words = [self._words[pick] for pick in picks]
        if self.random.random() < 0.1:
            words.append("".join(self.random.choices(CJK, k=3)))
        return " ".join(words)


def turn(words: Words, number: int, now: int) -> list[Entry]:
    """Return the entries of one turn with a question and its answer."""
    turn_id = new_id()
    common: dict[str, Any] = {"turn_id": turn_id, "step": 1, "created_at": now}
    return [
        {"t": "turn", "id": turn_id, "state": "running", "startedAt": now, "settings": {},
         "instance": "bench"},
        {"t": "step", "turnId": turn_id, "number": 1, "model": "bench", "startedAt": now},
        item_entry(UserMessage(
            id=new_id(), at=2 * number + 1, content=(TextContent(text=words.text(12)),), **common
        )),
        item_entry(AssistantMessage(
            id=new_id(), at=2 * number + 2, text=words.text(60), **common
        )),
        {"t": "step", "turnId": turn_id, "number": 1, "endedAt": now + 900},
        {"t": "turn", "id": turn_id, "state": "completed", "endedAt": now + 900, "steps": 1},
    ]  # fmt: skip


class Writer:
    """Writes conversations as their sessions would, without waiting for the disk."""

    def __init__(self, directory: DataDir) -> None:
        self._directory = directory
        self._place = directory.ensure_id()

    def write(self, number: int, batches: Iterator[list[Entry]]) -> str:
        path = new_id()
        now = START + number * 60_000
        origin = origin_hash(self._place, path)
        info = ConversationInfo(
            id=path,
            created_at=now,
            updated_at=now,
            locations=(Location(executor="local", directory=f"/home/me/project-{number % 50}"),),
            tags=("bench", f"tag-{number % 20}"),
        )
        root = SessionInfo(id=path, agent="default", created_at=now, settings=Settings(model="m"))
        head = [format_entry(), origin_entry(origin), session_entry(root)]
        folder = self._directory.conversations / path
        folder.mkdir(mode=0o700)
        metadata = make_lines(metadata_start(metadata_of(info, origin)), path)
        (folder / "metadata.jsonl").write_bytes(metadata)
        with (folder / "main.jsonl").open("wb") as file:
            first = 1
            for batch in (head, *batches):
                file.write(make_line(first, len(batch), b",".join(map(encode, batch))))
                first += len(batch)
        return path


def with_checkpoints(words: Words, turns: int) -> Iterator[list[Entry]]:
    """Yield the turns of a long session, with the checkpoints that it would write."""
    state = SessionState("s")
    grown = 0
    for number in range(turns):
        batch = turn(words, number, START + number * 1000)
        for entry in batch:
            state.apply(entry)
            grown += len(encode(entry))
        yield batch
        if grown > CHECKPOINT_AFTER_BYTES_MIN:
            yield [state.checkpoint()]
            grown = 0


def write_all(directory: DataDir, count: int, items: int) -> tuple[str, str]:
    """Write everything; return the ids of a conversation of 100 items and of the long one."""
    words = Words(1)
    writer = Writer(directory)
    started = time.perf_counter()
    for number in range(count):
        writer.write(
            number,
            (turn(words, n, START + number * 60_000) for n in range(words.random.randint(1, 4))),
        )
    short = writer.write(count, with_checkpoints(words, 50))
    long = writer.write(count + 1, with_checkpoints(words, items // 2))
    say(f"written: {count + 2} conversations in {time.perf_counter() - started:.1f} s")
    return short, long


async def timed(what: str, run: Callable[[int], Awaitable[object]], rounds: int = ROUNDS) -> None:
    """Run ``run`` often and say how long it took."""
    took: list[float] = []
    for number in range(rounds):
        started = time.perf_counter()
        await run(number)
        took.append((time.perf_counter() - started) * 1000)
    cuts = statistics.quantiles(took, n=100)
    say(f"{what:<44} p50 {cuts[49]:7.2f} ms   p99 {cuts[98]:7.2f} ms   max {max(took):7.2f} ms")


async def measure_lists(store: Store) -> None:
    await timed("list: newest page of 50", lambda _: store.list())
    await timed(
        "list: by creation, oldest first",
        lambda _: store.list(ListQuery(order="created", newest_first=False)),
    )
    await timed("list: one directory", lambda n: store.list(
        ListQuery(directory=f"/home/me/project-{n % 50}")
    ))  # fmt: skip
    await timed("list: one tag", lambda n: store.list(ListQuery(tag=f"tag-{n % 20}")))
    await timed("list: tag and directory", lambda n: store.list(
        ListQuery(tag=f"tag-{n % 20}", directory=f"/home/me/project-{n % 50}")
    ))  # fmt: skip
    cursor: str | None = None

    async def next_page(_: int) -> None:
        nonlocal cursor
        cursor = (await store.list(cursor=cursor)).cursor

    await timed("list: page after page", next_page)


async def measure_searches(store: Store) -> None:
    words = Words(2)
    await timed("search: one random word", lambda _: store.search(words.text(1)))
    await timed("search: two random words", lambda _: store.search(words.text(2)))
    await timed("search: the most frequent word", lambda _: store.search("bababa"))
    await timed("search: the beginning of a word", lambda _: store.search("zuz"))
    await timed("search: two Chinese characters", lambda n: store.search(CJK[n % len(CJK)]))
    await timed("search: one Chinese character", lambda n: store.search(CJK[n % len(CJK)][0]))


async def measure_opening(store: Store, short: str, long: str, items: int) -> None:
    async def open_newest(conversation_id: str) -> None:
        log = await store.open(conversation_id)
        session = await log.open_session(conversation_id)
        await session.items(limit=50)
        await log.close()

    await timed("open and newest 50 items: 100 items", lambda _: open_newest(short))
    await timed(f"open and newest 50 items: {items} items", lambda _: open_newest(long))
    session = await (await store.open(long)).open_session(long)
    random = Random(3)
    await timed(
        "50 items from a random place of the long one",
        lambda _: session.items(before=random.randrange(2, items), limit=50),
    )


async def measure_idle(root: Path) -> None:
    """Open conversations and keep them open, as idle actors do."""
    async with open_store(root) as store:
        ids = [row.id for row in (await store.list(limit=1000)).rows]
        cursor = (await store.list(limit=1000)).cursor
        while cursor is not None and len(ids) < IDLE_MAX:
            page = await store.list(cursor=cursor, limit=1000)
            ids += [row.id for row in page.rows]
            cursor = page.cursor
        await keep_open(store, ids[:IDLE_MAX])


async def keep_open(store: Store, ids: list[str]) -> None:
    before = resident_bytes()
    started = time.perf_counter()
    kept: list[object] = []
    for conversation_id in ids:
        log = await store.open(conversation_id)
        kept.append((log, await log.open_session(conversation_id)))
    took = time.perf_counter() - started
    each = (resident_bytes() - before) / len(kept) / 1024
    files = len(os.listdir("/proc/self/fd"))
    say(
        f"{len(kept)} open: {each:.1f} KB each, {took / len(kept) * 1000:.2f} ms each to open, "
        f"{files} descriptors"
    )


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


async def measure(root: Path, count: int, items: int) -> None:
    directory = DataDir(root)
    directory.prepare()
    short, long = write_all(directory, count, items)
    started = time.perf_counter()
    async with open_store(root) as store:
        await store.settled()
        took = time.perf_counter() - started
        say(f"index built: {took:.1f} s, {count / took:.0f} conversations/s")
        size = directory.metadata_db.stat().st_size >> 20
        say(f"metadata.db: {size} MB")
    # In a process of its own: this one has memory to spare from building.
    await trio.run_process([sys.executable, __file__, "--idle", str(root)])
    started = time.perf_counter()
    async with open_store(root) as store:
        await store.list()
        say(f"start to first page: {time.perf_counter() - started:.3f} s")
        await store.settled()
        say(f"compared with the directories: {time.perf_counter() - started:.1f} s after start")
        await measure_lists(store)
        await measure_searches(store)
        await measure_opening(store, short, long, items)
        started = time.perf_counter()
        report = await store.reindex()
        took = time.perf_counter() - started
        say(f"reindex: {took:.1f} s, {report.conversations / took:.0f} conversations/s")


def say(text: str) -> None:
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--conversations", type=int, default=20_000)
    parser.add_argument("--items", type=int, default=100_000, help="of the long conversation")
    parser.add_argument("--dir", type=Path, default=None, help="where to write; it is removed")
    parser.add_argument("--idle", type=Path, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.idle is not None:
        trio.run(measure_idle, options.idle)
        return
    with tempfile.TemporaryDirectory(dir=options.dir) as root:
        trio.run(measure, Path(root), options.conversations, options.items)


if __name__ == "__main__":
    main()
