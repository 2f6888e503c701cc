"""A real workspace on this machine, and a caller of tools in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import trio

from tests.vaala.tools.calling import Caller
from vaala_executors import Workspace
from vaala_executors.local import LocalExecutor


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The workspace's directory, with a name that must survive every quoting (D8-1)."""
    path = tmp_path / "my proj (1) 'q' $HOME" / "数据"
    path.mkdir(parents=True)
    return path


@pytest.fixture
async def workspace(directory: Path) -> AsyncIterator[Workspace]:
    async with LocalExecutor() as executor, executor.open_workspace(str(directory)) as opened:
        yield opened


@pytest.fixture
def caller(workspace: Workspace, nursery: trio.Nursery) -> Caller:
    return Caller(workspace, nursery)
