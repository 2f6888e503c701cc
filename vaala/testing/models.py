"""`FixedModels`: a set of models that are given as objects, for tests and for programs that embed
the runtime with one model of their own.
"""

from __future__ import annotations

from vaala.models.base import Model, Models
from vaala_protocol.errors import BadRequest


class FixedModels(Models):
    """Resolves None to the first model and each name to the model of that name."""

    def __init__(self, default: Model, *others: Model) -> None:
        self._default = default
        self._models = {model.name: model for model in (default, *others)}

    async def resolve(self, name: str | None) -> tuple[Model, str]:
        if name is None:
            return self._default, f"model {self._default.name}: the default that was given"
        if name not in self._models:
            raise BadRequest(f"no model is called {name!r}; there are {', '.join(self._models)}")
        return self._models[name], f"model {name}: chosen by name"
