"""`open_user_runtime`: a runtime around the user's configuration, for servers and commands."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from msgspec.structs import replace

from vaala.config import Config
from vaala.config.keeper import Keeper
from vaala.dao.store import Store
from vaala.embed import open_runtime
from vaala.models.choose import KEY_VARIABLES
from vaala.runtime import Runtime
from vaala.telemetry.traces import open_observer
from vaala_executors.local import LocalExecutor


@asynccontextmanager
async def open_user_runtime(
    store: Store,
    keeper: Keeper,
    environ: Mapping[str, str],
    *,
    strip: tuple[str, ...] = (),
) -> AsyncGenerator[Runtime]:
    """Open a runtime that follows the configuration; what a run that was killed has left running
    is ended first. Commands do not inherit the variables in ``strip``, nor keys.

    Leaving ends everything that runs, in order; ``store`` and ``keeper`` stay open.
    """
    async with (
        open_observer(keeper.config.telemetry, environ) as observer,
        LocalExecutor(strip=lambda: (*strip, *secret_variables(keeper.config))) as executor,
        open_runtime(
            storage=store,
            models=keeper.model_set,
            executors={executor.name: executor},
            agents=keeper.config.agents,
            observer=observer,
        ) as runtime,
    ):
        async for _ in executor.left_over():
            pass  # ending it is all there is to do

        def follow() -> None:
            definitions = keeper.definitions(runtime.definitions)
            runtime.redefine(replace(definitions, withheld=secret_variables(keeper.config)))

        def adopt() -> None:
            if not keeper.problems:
                follow()
            runtime.hub.config_changed(keeper.generation, keeper.problems)

        follow()
        with keeper.watch(adopt):
            yield runtime


def secret_variables(config: Config) -> tuple[str, ...]:
    """Return the variables of keys: a command of an agent must not be able to read them."""
    return (*KEY_VARIABLES, *config.key_variables)
