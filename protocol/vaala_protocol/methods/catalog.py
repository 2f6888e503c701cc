"""``model/ agent/ executor/ config/``: what the runtime is made of."""

from __future__ import annotations

from typing import Any, Literal

from vaala_protocol.base import Value
from vaala_protocol.methods.base import Request
from vaala_protocol.methods.runtime import ConfigProblem, ReloadResult
from vaala_protocol.prices import CatalogueSource, FactSource, Feature, ModelPrices
from vaala_protocol.settings import Settings


class ModelInfo(Value, frozen=True, kw_only=True):
    name: str
    """What chooses it: ``provider/model``."""
    provider: str
    source: str = ""
    """Where it is known from: the configuration, a variable, a server on this machine."""
    context_tokens: int | None = None
    """The context window; None: not known, here as for what follows."""
    output_tokens: int | None = None
    """The most that one answer can have."""
    features: tuple[Feature, ...] | None = None
    prices: ModelPrices | None = None
    facts: dict[str, FactSource] = {}
    """Who says it, by the name of the field: configuration goes before server before catalogue."""
    catalogue: CatalogueSource | None = None
    """Where the catalogue has it from, when any of it is from there."""
    usable: bool = True
    reason: str = ""
    """Why it cannot be used."""


class ModelListResult(Value, frozen=True, kw_only=True):
    models: tuple[ModelInfo, ...]
    default: str | None = None
    """The model that runs when none is named."""
    reason: str = ""
    """Why that one; or why there is none, with the way out."""


class ModelListParams(Value, Request[ModelListResult], frozen=True, kw_only=True):
    """Return the models that are known, and the one that runs when none is named.

    What can be used, and what runs, is told for the keys that this client has.
    """

    method = "model/list"
    result = ModelListResult


class ModelGetParams(Value, Request[ModelInfo], frozen=True, kw_only=True):
    """Return a model by name, also one that is in no list.

    Its server is asked what it says of the model, for some seconds at most.
    """

    method = "model/get"
    result = ModelInfo

    name: str


class ModelResolveResult(Value, frozen=True, kw_only=True):
    model: str
    """What chooses it: ``provider/model``."""
    provider: str
    source: Literal["name", "conversation", "agent", "default"]
    """What has named it; ``default``: nothing has."""
    reason: str
    """One line that says why this one, and names it."""


class ModelResolveParams(Value, Request[ModelResolveResult], frozen=True, kw_only=True):
    """Return the model that would run for this client, with the keys that it has.

    That is the one of this name; else of the conversation, in whose settings and agent it is looked
    for; else of the agent; else the default. ``bad_request`` when there is none: the text names
    what was looked for and the ways out.
    """

    method = "model/resolve"
    result = ModelResolveResult

    name: str | None = None
    agent: str | None = None
    conversation_id: str | None = None


class AgentInfo(Value, frozen=True, kw_only=True):
    name: str
    description: str = ""
    settings: Settings = Settings()
    tools: tuple[str, ...] = ()
    instructions: str = ""


class AgentListResult(Value, frozen=True, kw_only=True):
    agents: tuple[AgentInfo, ...]


class AgentListParams(Value, Request[AgentListResult], frozen=True, kw_only=True):
    """Return the agents, without their instructions."""

    method = "agent/list"
    result = AgentListResult


class AgentGetParams(Value, Request[AgentInfo], frozen=True, kw_only=True):
    """Return an agent by name, with its instructions."""

    method = "agent/get"
    result = AgentInfo

    name: str


class ExecutorInfo(Value, frozen=True, kw_only=True):
    name: str
    kind: str


class ExecutorListResult(Value, frozen=True, kw_only=True):
    executors: tuple[ExecutorInfo, ...]


class ExecutorListParams(Value, Request[ExecutorListResult], frozen=True, kw_only=True):
    """Return the executors that conversations can work on."""

    method = "executor/list"
    result = ExecutorListResult


class ExecutorGetParams(Value, Request[ExecutorInfo], frozen=True, kw_only=True):
    """Return an executor by name."""

    method = "executor/get"
    result = ExecutorInfo

    name: str


class ConfigFileInfo(Value, frozen=True, kw_only=True):
    name: str
    """As in ``providers.yaml``."""
    path: str
    exists: bool


class ConfigListResult(Value, frozen=True, kw_only=True):
    directory: str
    files: tuple[ConfigFileInfo, ...]
    generation: int
    problems: tuple[ConfigProblem, ...] = ()


class ConfigListParams(Value, Request[ConfigListResult], frozen=True, kw_only=True):
    """Return the files of the configuration, and what is wrong in them now."""

    method = "config/list"
    result = ConfigListResult


class ConfigGetResult(Value, frozen=True, kw_only=True):
    value: Any
    """Secrets are replaced by a mark."""


class ConfigGetParams(Value, Request[ConfigGetResult], frozen=True, kw_only=True):
    """Return a file of the configuration, or one value in it, without secrets."""

    method = "config/get"
    result = ConfigGetResult

    file: str
    key: tuple[str | int, ...] = ()


class ConfigSetParams(Value, Request[ReloadResult], frozen=True, kw_only=True):
    """Change one value in a file and load the result; with problems the file is put back."""

    method = "config/set"
    result = ReloadResult

    file: str
    key: tuple[str | int, ...]
    value: Any
    """None takes the key out."""
