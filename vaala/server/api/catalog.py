"""``model/ agent/ executor/ config/``: what the runtime is made of, without secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from vaala.agent.definition import AgentDefinition
from vaala.server.api.api import Api
from vaala.server.api.caller import Caller
from vaala.server.api.method import Method, config_lane, method, view
from vaala_protocol.errors import NotFound
from vaala_protocol.methods import catalog as wire
from vaala_protocol.methods.runtime import ReloadResult

T = TypeVar("T")


async def model_list(api: Api, params: wire.ModelListParams) -> wire.ModelListResult:
    return await api.config.models()


async def model_get(api: Api, params: wire.ModelGetParams) -> wire.ModelInfo:
    models = {model.name: model for model in (await api.config.models()).models}
    return _named(models, "model", params.name)


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
    view(wire.ModelListParams, model_list),
    view(wire.ModelGetParams, model_get),
    view(wire.AgentListParams, agent_list),
    view(wire.AgentGetParams, agent_get),
    view(wire.ExecutorListParams, executor_list),
    view(wire.ExecutorGetParams, executor_get),
    view(wire.ConfigListParams, config_list),
    view(wire.ConfigGetParams, config_get),
    method(wire.ConfigSetParams, config_set, config_lane),
)
