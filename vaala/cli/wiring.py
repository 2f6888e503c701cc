"""The user's runtime: their data, configuration and keys around the same objects as everywhere."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from vaala.cli.data import open_writer
from vaala.cli.exits import USAGE, CommandFailed
from vaala.cli.guess import did_you_mean
from vaala.config import Config
from vaala.config.keeper import open_keeper
from vaala.models.base import Models
from vaala.paths import config_directory
from vaala.permissions.policy import ModeGate
from vaala.permissions.rules import parse_rules
from vaala.runtime import Runtime
from vaala.server.wiring import open_user_runtime
from vaala.tools.builtin import builtin_tools


class User(Struct, frozen=True):
    """An open runtime, and what it was made of."""

    runtime: Runtime
    models: Models
    config: Config


@asynccontextmanager
async def open_user(
    data: Path, *, allow: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> AsyncGenerator[User]:
    """Open the user's runtime; ``allow`` are permission rules for all of its sessions.

    Raises `ConfigError`, `BadRequest` for a rule that is none, `CommandFailed` when the data
    directory cannot be used, `StoreLocked` when another runtime owns it.
    """
    tools = builtin_tools().names
    rules = parse_rules(allow)
    for rule in rules.allow:
        if rule.tool not in tools:
            guess = did_you_mean(rule.tool, tools) or f"; there are {', '.join(tools)}"
            raise CommandFailed(f"--allow {rule}: no tool is called {rule.tool!r}{guess}", USAGE)
    async with (
        open_keeper(config_directory(environ), environ, tools=tools) as keeper,
        open_writer(data) as store,
        open_user_runtime(store, keeper, ModeGate(rules), environ) as runtime,
    ):
        yield User(runtime, keeper.model_set, keeper.config)
