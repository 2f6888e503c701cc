"""Whole runtimes under random clients, faults and crashes; `bench/storms.py` runs more."""

from __future__ import annotations

import logging

import pytest

from tests.simulation.story import tell

SEEDS = 180
BLOCK = 20
FOUND = (2539, 4300, 5436, 12742, 20528, 24861, 25764, 58_959)
"""Stories that ended badly once: an agent and an append whose outcome was not known, an agent
whose result was told before its end was saved, and entries that a killed run had not synced, told
by the next run and taken by a power loss after that.
"""


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_stories_end_well(first: int, caplog: pytest.LogCaptureFixture) -> None:
    """A1-3, A1-5, G3-1, G3-2, G3-3, H4-3, H5-1, H5-3, H5-4, H9-2."""
    caplog.set_level(logging.CRITICAL)
    for seed in range(first, first + BLOCK):
        tell(seed)


@pytest.mark.parametrize("seed", FOUND)
def test_stories_that_ended_badly_once(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    tell(seed)
