"""`Outbox`: answers at once, events in bursts."""

from __future__ import annotations

from collections import deque

import trio
import trio.testing

from vaala.server import limits
from vaala.server.outbox import Outbox, Source
from vaala.server.wire import Wire


class _Sent(Wire):
    """Keeps what was sent, and when."""

    def __init__(self) -> None:
        self.at: dict[bytes, float] = {}

    async def send(self, *messages: bytes) -> None:
        await trio.lowlevel.checkpoint()
        self.at.update(dict.fromkeys(messages, trio.current_time()))

    async def receive(self) -> str | bytes:
        raise AssertionError("nothing is read here")

    async def close(self, code: int, reason: str) -> None:
        raise AssertionError("nothing is closed here")

    def abort(self) -> None:
        raise AssertionError("nothing is cut here")


class _Pieces(Source):
    """All that waits becomes one message."""

    def __init__(self, outbox: Outbox) -> None:
        self._waiting: deque[bytes] = deque()
        self._outbox = outbox

    def add(self, piece: bytes) -> None:
        self._waiting.append(piece)
        self._outbox.ready(self)

    def next_message(self) -> bytes | None:
        message = b"".join(self._waiting)
        self._waiting.clear()
        return message or None


async def test_a_burst_becomes_few_messages_and_no_answer_waits_for_it(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    outbox, sent = Outbox(), _Sent()
    pieces = _Pieces(outbox)
    nursery.start_soon(outbox.run, sent)
    await trio.testing.wait_all_tasks_blocked()
    began = trio.current_time()
    for letter in b"abcd":
        pieces.add(bytes([letter]))
        await trio.testing.wait_all_tasks_blocked()
    outbox.put(b"answer")
    await trio.sleep(1)
    pieces.add(b"later")
    await trio.sleep(1)
    outbox.end()
    assert sent.at == {
        b"a": began,
        b"answer": began,
        b"bcd": began,
        b"later": began + 1,
    }


async def test_what_follows_closely_waits_for_the_period(
    nursery: trio.Nursery, autojump_clock: object
) -> None:
    outbox, sent = Outbox(), _Sent()
    pieces = _Pieces(outbox)
    nursery.start_soon(outbox.run, sent)
    began = trio.current_time()
    for letter in b"abcd":
        pieces.add(bytes([letter]))
        await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(1)
    outbox.end()
    assert sent.at == {b"a": began, b"bcd": began + limits.EVENTS_PERIOD_S}
