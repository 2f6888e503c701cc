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
from vaala.config import Config, load_config
from vaala.embed import open_runtime
from vaala.models.base import Models
from vaala.models.choose import KEY_VARIABLES
from vaala.models.set import open_models
from vaala.paths import config_directory
from vaala.permissions.policy import ModeGate
from vaala.permissions.rules import parse_rules
from vaala.runtime import Runtime
from vaala.tools.builtin import builtin_tools
from vaala_executors.local import LocalExecutor


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
    config = load_config(config_directory(environ), environ, tools=tools)
    rules = parse_rules(allow)
    for rule in rules.allow:
        if rule.tool not in tools:
            guess = did_you_mean(rule.tool, tools) or f"; there are {', '.join(tools)}"
            raise CommandFailed(f"--allow {rule}: no tool is called {rule.tool!r}{guess}", USAGE)
    gate = ModeGate(rules)
    async with (
        open_writer(data) as store,
        open_models(
            config.providers,
            environ,
            default=config.default_model,
            unusable=config.unusable,
        ) as models,
        LocalExecutor(strip=secret_variables(config)) as executor,
        open_runtime(
            storage=store,
            models=models,
            gate=gate,
            executors={executor.name: executor},
            agents=config.agents,
        ) as runtime,
    ):
        async for _ in executor.left_over():
            pass  # a run that was killed left it behind; ending it is all there is to do
        yield User(runtime, models, config)


def secret_variables(config: Config) -> tuple[str, ...]:
    """Return the variables of keys: a command of an agent must not be able to read them."""
    return (*KEY_VARIABLES, *config.key_variables)
