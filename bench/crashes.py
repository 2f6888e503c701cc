"""Kill real runs: ``python bench/crashes.py --kills 200``.

Each run is `vaala run` with a script that is heavy on tools, killed with SIGKILL at one of as many
moments spread evenly between its first and its last append. See `tests/simulation/kills.py` for
what is checked.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.simulation.kills import Killed, Place, kill, measure  # noqa: E402 # the path comes first


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(given.jobs) as pool:
        root = Path(folder)
        spans = list(pool.map(lambda n: measure(Place(root / f"whole-{n}", -1 - n)), range(4)))
        span = sorted(spans)[len(spans) // 2]
        print(f"first to last append: {', '.join(f'{one:.2f}' for one in spans)} s", flush=True)

        def one(number: int) -> Killed | str:
            after_s = span * (number + 0.5) / given.kills
            try:
                return kill(Place(root / str(number), number), after_s)
            except Exception as error:
                return f"kill {number} after {after_s:.3f} s: {type(error).__name__}: {error}"

        results = list(pool.map(one, range(given.kills)))
    failures = [result for result in results if isinstance(result, str)]
    killed = [result for result in results if isinstance(result, Killed)]
    print("\n".join(failures))
    print(
        f"{len(results)} kills, {sum(one.finished for one in killed)} of them after the end; "
        f"{sum(one.done for one in killed)} calls done, "
        f"{sum(one.in_flight for one in killed)} in flight and unknown; "
        f"{len(failures)} failed; {time.monotonic() - began:.0f} s"
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
