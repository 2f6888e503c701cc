"""A server that rests gives memory back when it has grown, and leaves it alone else."""

from __future__ import annotations

import trio
from trio.testing import MockClock

from vaala.server import limits
from vaala.server.give_back import collect_and_trim, give_back_memory

MIB = 1024 * 1024


class Process:
    """Its resident memory, and what of that can be given back."""

    def __init__(self) -> None:
        self.resident = 50 * MIB
        self.garbage = 0
        self.busy = False
        self.times = 0

    def grow(self, megabytes: int, *, garbage: bool) -> None:
        self.resident += megabytes * MIB
        self.garbage += megabytes * MIB if garbage else 0

    def give_back(self) -> None:
        self.times += 1
        self.resident -= self.garbage
        self.garbage = 0


async def test_memory_is_given_back_in_a_rest_after_it_has_grown(
    autojump_clock: MockClock,
) -> None:
    process = Process()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(
            give_back_memory,
            lambda: process.busy,
            lambda: process.resident,
            process.give_back,
        )
        process.grow(20, garbage=True)
        await _looks(3)
        assert process.times == 0
        process.busy = True
        process.grow(100, garbage=True)
        await _looks(3)
        assert process.times == 0
        process.busy = False
        await _looks(3)
        assert (process.times, process.resident) == (1, 50 * MIB)
        process.grow(100, garbage=False)
        await _looks(10)
        assert process.times == 2, "what is in use is looked through once"
        process.grow(40, garbage=True)
        await _looks(2)
        assert (process.times, process.resident) == (3, 150 * MIB)
        nursery.cancel_scope.cancel()


async def _looks(count: int) -> None:
    await trio.sleep(count * limits.MEMORY_PERIOD_S + 1)


def test_garbage_is_collected() -> None:
    class Node:
        alive = 0

        def __init__(self) -> None:
            self.own = self
            Node.alive += 1

        def __del__(self) -> None:
            Node.alive -= 1

    Node()
    collect_and_trim()
    assert Node.alive == 0
