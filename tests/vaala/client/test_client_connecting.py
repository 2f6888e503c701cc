"""`connect` where the program that calls it is in an odd place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vaala.client.meeting import door_of
from tests.vaala.server.api.serving import server
from vaala.client import connect


async def test_a_program_whose_directory_was_removed_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with (
        server() as srv,
        door_of(srv) as door,
        connect(address=f"127.0.0.1:{door.port}", token=door.token) as client,
    ):
        assert (await client.status()).clients == 1
        assert "was removed" in client.absolute("file")
