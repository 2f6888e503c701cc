"""A server is killed in the middle of everything, and its clients go on with the next one."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio

from tests.vaala.client.killing import check, everything_goes_on, go_on, kill

PATIENCE_S = 90.0


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_what_was_accepted_is_there_and_what_ran_is_dead(tmp_path: Path) -> None:
    # G2-1, H9-2
    with trio.fail_after(PATIENCE_S):
        async with everything_goes_on(tmp_path) as stage:
            killed = stage.clients[0].server
            await kill(stage)
            first, second = (client.server for client in stage.clients)
            assert first.instance == second.instance != killed.instance
            await check(stage)
            await go_on(stage)
