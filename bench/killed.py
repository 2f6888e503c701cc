"""A server is killed in the middle of everything: how soon its clients have all of it again.

    python bench/killed.py --kills 10

Two clients watch a turn that runs a command with children, an input that waits, and an approval
that waits in another conversation. After SIGKILL the first of them to notice starts the next
server. See `tests/vaala/client/killing.py` for what is checked.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

import trio

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.vaala.client.killing import (  # noqa: E402 # the path comes first
    Killed,
    check,
    everything_goes_on,
    go_on,
    kill,
)


async def once(root: Path) -> Killed:
    async with everything_goes_on(root) as stage:
        killed = await kill(stage)
        await check(stage)
        await go_on(stage)
        return killed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=10)
    given = parser.parse_args()
    found: list[Killed] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            os.environ[name] = folder
        for number in range(given.kills):
            root = Path(folder, str(number))
            root.mkdir()
            found.append(trio.run(once, root))
    resumed, dead = [one.resumed_s for one in found], [one.dead_s for one in found]
    print(f"{given.kills} kills: both clients know all again after {shown(resumed)}; the last "
          f"process is dead after {shown(dead)}")  # fmt: skip


def shown(figures: list[float]) -> str:
    return f"{statistics.median(figures):.2f} s (at most {max(figures):.2f} s)"


if __name__ == "__main__":
    main()
