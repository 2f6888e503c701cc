"""The embedding API: a runtime inside your own trio program."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

import trio

from vaala.agent.definition import AgentDefinition
from vaala.dao.opening import open_memory_store
from vaala.dao.store import Store
from vaala.definitions import Definitions
from vaala.models.base import Model, Models
from vaala.models.choose import KEY_VARIABLES
from vaala.observer import Observer
from vaala.permissions.base import PermissionGate
from vaala.permissions.policy import ModeGate
from vaala.runtime import Runtime
from vaala.tools.base import Tool
from vaala.tools.builtin import builtin_tools
from vaala.tools.function import tool as function_tool
from vaala_executors.local import LocalExecutor
from vaala_executors.workspace import Executor
from vaala_protocol.errors import BadRequest

ToolLike: TypeAlias = Tool | Callable[..., Awaitable[Any]]

_INSTRUCTIONS = (
    "You are a helpful agent. Use your tools to do what is asked, then say what you did."
)


class GivenModels(Models):
    """Models given as objects: the first one is the default."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = {model.name: model for model in models}

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._models)

    async def resolve(self, name: str | None) -> tuple[Model, str]:
        """See `Models.resolve`."""
        if not self._models:
            raise BadRequest("no model: pass models= to open_runtime")
        if name is None:
            return next(iter(self._models.values())), "the first model given"
        if name in self._models:
            return self._models[name], "chosen by name"
        raise BadRequest(f"no model {name!r}; there are: {', '.join(self._models)}")


@asynccontextmanager
async def open_runtime(
    *,
    storage: Store | None = None,
    models: Models | Model | Sequence[Model] = (),
    tools: Sequence[ToolLike] = (),
    gate: PermissionGate | None = None,
    executors: Mapping[str, Executor] | None = None,
    agents: Mapping[str, AgentDefinition] | None = None,
    observer: Observer | None = None,
) -> AsyncGenerator[Runtime]:
    """Run a runtime while the block runs; the same objects that the command line uses.

    By default it lives in memory, works on this machine, reads neither the user's configuration
    nor data, and has no model: pass ``models``. ``storage`` is an open store (`vaala.open_store`).
    ``tools`` come in addition to the built-in ones: plain async functions with type hints and a
    docstring, or `Tool` objects. ``gate`` decides what calls may do; by default the mode of the
    session does (`ask`). ``observer`` is told what is
    done, for traces. No sockets, no globals, no signal handlers. On leaving, running turns are
    interrupted and everything is written down. Raises RuntimeError outside of trio.
    """
    if not trio.lowlevel.in_trio_run():
        raise RuntimeError(
            "vaala runs on trio: open the runtime inside trio.run(main), not asyncio.run(main)"
        )
    async with AsyncExitStack() as stack:
        store = storage
        if store is None:
            store = await stack.enter_async_context(open_memory_store())
        if executors is None:
            local = LocalExecutor(strip=lambda: KEY_VARIABLES)
            executors = {"local": await stack.enter_async_context(local)}
        own = [one if isinstance(one, Tool) else function_tool(one) for one in tools]
        definitions = Definitions(
            agents=agents or {"default": AgentDefinition("default", _INSTRUCTIONS)},
            models=_models(models),
            tools=builtin_tools().plus(own),
            gate=gate or ModeGate(),
            instance=store.instance,
            observer=observer or Observer(),
        )
        yield await stack.enter_async_context(Runtime.open(store, definitions, executors))


def _models(given: Models | Model | Sequence[Model]) -> Models:
    match given:
        case Models():
            return given
        case Model():
            return GivenModels([given])
        case _:
            return GivenModels(given)
