"""Executors under test: every test that takes `executor` or `workspace` holds for all of them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vaala_executors import Executor, Workspace
from vaala_executors.local import LocalExecutor


@pytest.fixture(params=["local"])
async def executor(request: pytest.FixtureRequest) -> AsyncIterator[Executor]:
    assert request.param == "local"
    environ = {**os.environ, "TEST_PROVIDER_KEY": "secret"}
    async with LocalExecutor(environ=environ, strip=lambda: ["TEST_PROVIDER_KEY"]) as opened:
        yield opened


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """The workspace's directory, with a name that must survive every quoting (D8-1)."""
    path = tmp_path / "my proj (1) 'q' $HOME" / "数据"
    path.mkdir(parents=True)
    return path


@pytest.fixture
async def workspace(executor: Executor, directory: Path) -> AsyncIterator[Workspace]:
    async with executor.open_workspace(str(directory)) as opened:
        yield opened
