"""`ConfigKeeper`: the configuration of a running server, as its methods need it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from vaala.models.base import Model
from vaala.models.catalogue.facts import Known
from vaala_protocol.methods.catalog import ConfigListResult, ModelInfo, ModelListResult
from vaala_protocol.methods.runtime import ConfigProblem, ReloadResult, WantedVariables


class ConfigKeeper(Protocol):
    """Loads the configuration, edits it, and gives it to the runtime. Nothing here tells secrets.

    Every method raises `Refused` kinds: `NotFound` for a file, key or model that is not there,
    `BadRequest` for a value that cannot stand there.
    """

    @property
    def generation(self) -> int:
        """Counts the configurations that were loaded, from 1."""
        ...

    @property
    def problems(self) -> tuple[ConfigProblem, ...]:
        """Why the newest files are not in force; empty when they are."""
        ...

    @property
    def wanted(self) -> WantedVariables:
        """Variables of clients that the configuration names, besides those always told."""
        ...

    async def reload(self) -> ReloadResult:
        """Load the files again; with problems the configuration before stays in force.

        Cancel: either the old or the new one is in force, whole.
        """
        ...

    async def refresh(self) -> None:
        """Reload when a file has changed since they were last read."""
        ...

    async def list(self) -> ConfigListResult: ...

    async def get(self, file: str, key: tuple[str | int, ...]) -> Any:
        """Return a file, or the value at ``key`` in it, with every secret replaced by a mark."""
        ...

    async def set(self, file: str, key: tuple[str | int, ...], value: Any) -> ReloadResult:
        """Change one value and load the result; with problems the file is put back. None deletes.

        Durable on return. Cancel: the file is as it was, or as it is wanted.
        """
        ...

    async def models(self, keys: Mapping[str, str]) -> ModelListResult:
        """Return the models that are known, and which one runs when none is named.

        ``keys`` are variables of providers that the client has.
        """
        ...

    async def model_info(self, name: str, keys: Mapping[str, str]) -> ModelInfo:
        """Return a model by name, also one that is in no list, with what is known of it.

        Its server is asked, for some seconds at most. Raises `NotFound` for no such model.
        """
        ...

    def known(self, name: str, keys: Mapping[str, str]) -> Known:
        """Return what is known of the model ``provider/model``, without asking anybody."""
        ...

    async def model(self, name: str | None, keys: Mapping[str, str]) -> tuple[Model, str]:
        """Return the model of a name, or the default, and one line that says why that one.

        Raises `BadRequest` that names what was looked for, where a wrong default stands, and the
        ways out.
        """
        ...
