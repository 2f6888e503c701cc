"""``model/ agent/ executor/ config/``: what the runtime is made of, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, TypeVar

from vaala.agent.definition import AgentDefinition
from vaala.server.api.api import Api
from vaala.server.api.caller import Caller
from vaala.server.api.method import Method, config_lane, method, no_lane, view
from vaala_protocol.errors import BadRequest, ModelUnreachable, NotFound
from vaala_protocol.methods import catalog as wire
from vaala_protocol.methods.runtime import ReloadResult

T = TypeVar("T")
Source: TypeAlias = Literal["name", "conversation", "agent", "default"]

NO_KEYS: Final[Mapping[str, str]] = MappingProxyType({})


async def model_list(
    api: Api, params: wire.ModelListParams, keys: Mapping[str, str] = NO_KEYS
) -> wire.ModelListResult:
    return await api.config.models(keys)


async def model_get(
    api: Api, params: wire.ModelGetParams, keys: Mapping[str, str] = NO_KEYS
) -> wire.ModelInfo:
    return await api.config.model_info(params.name, keys)


async def _model_list(caller: Caller, params: wire.ModelListParams) -> wire.ModelListResult:
    return await model_list(caller.api, params, caller.keys)


async def _model_get(caller: Caller, params: wire.ModelGetParams) -> wire.ModelInfo:
    return await model_get(caller.api, params, caller.keys)


async def _model_resolve(
    caller: Caller, params: wire.ModelResolveParams
) -> wire.ModelResolveResult:
    name, source, owner, keys = await _named_model(caller, params)
    try:
        model, why = await caller.api.config.model(name, keys)
    except ModelUnreachable:
        raise
    except BadRequest as error:
        if not owner:
            raise
        raise BadRequest(f"{owner}: {error}") from error
    reason = f"model {model.name}: {owner}" if owner else why
    return wire.ModelResolveResult(
        model=model.name, provider=model.provider, source=source, reason=reason
    )


async def _named_model(
    caller: Caller, params: wire.ModelResolveParams
) -> tuple[str | None, Source, str, Mapping[str, str]]:
    """Return the name of the model, what names it, who that is for people, and the keys that
    count. Raises `NotFound` for no such conversation, `BadRequest` for no such agent."""
    definitions = caller.api.runtime.definitions
    keys = caller.keys
    own: str | None = None
    source: Source = "default"
    owner = ""
    if params.conversation_id is not None:
        conversation = await caller.api.runtime.conversation(params.conversation_id)
        root = await conversation.root()
        if caller.environment is None:
            keys = conversation.environment.keys
        agent = definitions.agent(root.info.agent)
        own = root.state.head.settings.over(agent.settings).model
        source, owner = "conversation", "this conversation"
    elif params.agent is not None:
        own = definitions.agent(params.agent).settings.model
        source, owner = "agent", f"agent {params.agent}"
    if params.name is not None:
        return params.name, "name", "", keys
    return (own, source, owner, keys) if own is not None else (None, "default", "", keys)


async def agent_list(api: Api, params: wire.AgentListParams) -> wire.AgentListResult:
    agents = api.runtime.definitions.agents.values()
    return wire.AgentListResult(agents=tuple(_agent(api, agent) for agent in agents))


async def agent_get(api: Api, params: wire.AgentGetParams) -> wire.AgentInfo:
    agent = _named(api.runtime.definitions.agents, "agent", params.name)
    return _agent(api, agent, instructions=agent.instructions)


def _agent(api: Api, agent: AgentDefinition, instructions: str = "") -> wire.AgentInfo:
    tools = agent.tools if agent.tools is not None else api.runtime.definitions.tools.names
    return wire.AgentInfo(
        name=agent.name,
        description=agent.description,
        settings=agent.settings,
        tools=tuple(tools),
        instructions=instructions,
    )


async def executor_list(api: Api, params: wire.ExecutorListParams) -> wire.ExecutorListResult:
    return wire.ExecutorListResult(executors=tuple(_executors(api).values()))


async def executor_get(api: Api, params: wire.ExecutorGetParams) -> wire.ExecutorInfo:
    return _named(_executors(api), "executor", params.name)


def _executors(api: Api) -> dict[str, wire.ExecutorInfo]:
    return {
        name: wire.ExecutorInfo(name=name, kind=executor.kind)
        for name, executor in api.runtime.executors.items()
    }


async def config_list(api: Api, params: wire.ConfigListParams) -> wire.ConfigListResult:
    return await api.config.list()


async def config_get(api: Api, params: wire.ConfigGetParams) -> wire.ConfigGetResult:
    return wire.ConfigGetResult(value=await api.config.get(params.file, params.key))


async def config_set(caller: Caller, params: wire.ConfigSetParams) -> ReloadResult:
    return await caller.api.config.set(params.file, params.key, params.value)


def _named(known: Mapping[str, T], kind: str, name: str) -> T:
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise NotFound(f"no {kind} {name!r}; there are: {names}")
    return known[name]


METHODS: tuple[Method, ...] = (
    Method(wire.ModelListParams, _model_list, no_lane, bulky=True),
    Method(wire.ModelGetParams, _model_get, no_lane, bulky=True),
    method(wire.ModelResolveParams, _model_resolve, no_lane),
    view(wire.AgentListParams, agent_list),
    view(wire.AgentGetParams, agent_get),
    view(wire.ExecutorListParams, executor_list),
    view(wire.ExecutorGetParams, executor_get),
    view(wire.ConfigListParams, config_list),
    view(wire.ConfigGetParams, config_get),
    method(wire.ConfigSetParams, config_set, config_lane),
)
