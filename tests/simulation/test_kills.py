"""`vaala run`, killed for real. `bench/crashes.py` does it 200 times."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.simulation.kills import ROUNDS, TOOLS, Killed, Place, kill, measure

KILLS = 6
AT_ONCE = 3


@pytest.mark.skipif(sys.platform != "linux", reason="looks for what is alive in /proc")
def test_a_kill_at_any_moment_loses_and_doubles_nothing(tmp_path: Path) -> None:
    """A1-3, D3-3, G2-1, H9-2."""
    span = measure(Place(tmp_path / "whole", -1))

    def one(number: int) -> Killed:
        return kill(Place(tmp_path / str(number), number), span * (number + 0.5) / KILLS)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        killed = list(pool.map(one, range(KILLS)))
    assert any(not one.finished for one in killed)
    assert any(one.done < ROUNDS * TOOLS for one in killed)
