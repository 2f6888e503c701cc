"""The user's runtime: their data, configuration and keys around the same objects as everywhere."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from vaala.cli.allowing import RunRules, check_tools
from vaala.cli.data import open_writer
from vaala.config.keeper import Keeper, open_keeper
from vaala.interface import Catalog, Conversation, Conversations
from vaala.paths import config_directory
from vaala.runtime import Runtime
from vaala.server.wiring import open_user_runtime
from vaala.tools.builtin import builtin_tools
from vaala_protocol.settings import Settings

_NO_KEYS: Final[Mapping[str, str]] = MappingProxyType({})
"""Those of the environment are the runtime's own."""


class User(Struct, frozen=True):
    """A `vaala.cli.home.Home` in this process: an open runtime and its configuration."""

    runtime: Runtime
    keeper: Keeper

    @property
    def conversations(self) -> Conversations:
        return self.runtime

    @property
    def catalog(self) -> Catalog:
        return self.runtime.store

    @property
    def shared(self) -> bool:
        return False

    async def agent(self, name: str) -> Settings:
        return self.runtime.definitions.agent(name).settings

    async def settings(self, conversation: Conversation) -> Settings:
        actor = await self.runtime.conversation(conversation.id)
        actor.check_place()
        root = await actor.root()
        return root.state.head.settings.over(await self.agent(root.info.agent))

    async def resolve(self, name: str | None) -> tuple[str, str]:
        model, why = await self.keeper.model(name, _NO_KEYS)
        return model.name, why

    async def tell_connection(self, note: Callable[[str], None]) -> None:
        """Return at once: nothing lies between this process and the runtime."""


@asynccontextmanager
async def open_user(
    data: Path, *, allow: Sequence[str] = (), environ: Mapping[str, str] = os.environ
) -> AsyncGenerator[User]:
    """Open the user's runtime; ``allow`` are permission rules for all of its sessions.

    Raises `ConfigError`, `BadRequest` for a rule that is none, `CommandFailed` when the data
    directory cannot be used, `StoreLocked` when another runtime owns it.
    """
    rules, tools = RunRules.parse(allow), builtin_tools().names
    check_tools(rules, tools)
    async with (
        open_keeper(config_directory(environ), environ, tools=tools, rules=rules.rules) as keeper,
        open_writer(data) as store,
        open_user_runtime(store, keeper, environ) as runtime,
    ):
        yield User(runtime, keeper)
