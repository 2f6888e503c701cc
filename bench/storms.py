"""Run many stories: ``python bench/storms.py --seeds 10000 --jobs 2``."""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.simulation.story import tell  # noqa: E402 # the path above comes first

TELL_EVERY = 500


@dataclass
class Outcome:
    seed: int
    ops: int = 0
    crashes: int = 0
    lives: int = 0
    failure: str = ""


def outcome(seed: int) -> Outcome:
    try:
        ledger = tell(seed)
    except BaseException:
        return Outcome(seed, failure=traceback.format_exc())
    return Outcome(seed, ledger.ops, ledger.crashes, ledger.lives)


def outcomes(seeds: range, jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(outcome, seeds)
        return
    with multiprocessing.Pool(jobs, maxtasksperchild=500) as pool:
        yield from pool.imap_unordered(outcome, seeds, chunksize=5)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, help="run this one alone")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    first, count = (given.seed, 1) if given.seed is not None else (given.first, given.seeds)
    logging.getLogger("vaala").propagate = False
    logging.getLogger("vaala").addHandler(logging.NullHandler())
    began = time.monotonic()
    done: list[Outcome] = []
    for one in outcomes(range(first, first + count), given.jobs):
        done.append(one)
        if one.failure:
            print(f"seed {one.seed}:\n{one.failure}", flush=True)
        if len(done) % TELL_EVERY == 0 or len(done) == count:
            print(summary(done, time.monotonic() - began), flush=True)
    return 1 if any(one.failure for one in done) else 0


def summary(done: Sequence[Outcome], seconds: float) -> str:
    return (
        f"{len(done)} seeds, {sum(one.lives for one in done)} runtimes, "
        f"{sum(one.crashes for one in done)} crashes, {sum(one.ops for one in done)} operations "
        f"of clients, {sum(bool(one.failure) for one in done)} failed, {seconds:.0f} s"
    )


if __name__ == "__main__":
    sys.exit(main())
