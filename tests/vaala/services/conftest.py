"""A workspace on this machine that clients may serve, and a caller of tools in it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import trio

from tests.vaala.tools.calling import Caller
from vaala.services.environment import Environment
from vaala.services.registry import Services
from vaala.services.workspace import serviced
from vaala_executors import Workspace
from vaala_executors.local import LocalExecutor


@dataclass
class Desk:
    """A conversation's workspace, with its services, and the tools that work in it."""

    directory: Path
    inner: Workspace
    nursery: trio.Nursery
    services: Services = field(default_factory=Services)
    environment: Environment = field(default_factory=Environment)
    served: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.workspace = serviced(self.inner, self.services, self.environment, self.served.append)
        self.caller = Caller(self.workspace, self.nursery)

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def on_disk(self, name: str) -> str:
        return (self.directory / name).read_bytes().decode()


@pytest.fixture
async def desk(tmp_path: Path, nursery: trio.Nursery) -> AsyncIterator[Desk]:
    directory = tmp_path / "my proj" / "数据"
    directory.mkdir(parents=True)
    async with LocalExecutor() as executor, executor.open_workspace(str(directory)) as opened:
        yield Desk(directory, opened, nursery)
