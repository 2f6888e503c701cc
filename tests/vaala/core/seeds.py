"""Running a concurrent test under many orders of its tasks, each told by a seed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from random import Random

import trio
from trio._core import _run

_FLAG = "_ALLOW_DETERMINISTIC_SCHEDULING"


@contextmanager
def schedule(seed: int) -> Iterator[None]:
    """Let trio shuffle its tasks as ``seed`` says; what it did before comes back."""
    module = vars(_run)  # the flag is declared as final
    allowed, state = module[_FLAG], _run._r.getstate()
    module[_FLAG] = True
    _run._r.seed(seed)
    try:
        yield
    finally:
        module[_FLAG] = allowed
        _run._r.setstate(state)


def run_seeds(test: Callable[[Random], Awaitable[None]], seeds: int = 100) -> None:
    """Run ``test`` once for each seed, on a clock that jumps; a failure tells its seed.

    A hang becomes `trio.TooSlowError`: an hour on that clock passes at once when nothing else can.
    """
    for seed in range(seeds):
        clock = trio.testing.MockClock(autojump_threshold=0)
        try:
            with schedule(seed):
                trio.run(_bounded, test, Random(seed), clock=clock)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


async def _bounded(test: Callable[[Random], Awaitable[None]], random: Random) -> None:
    with trio.fail_after(3600):
        await test(random)
