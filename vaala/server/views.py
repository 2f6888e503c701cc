"""`ApiViews`: what the views over HTTP show, from the same methods that clients call."""

from __future__ import annotations

from typing import Any

from vaala.server.api import Api, conversations, runtimes, sessions
from vaala.server.api import catalog as catalogs
from vaala_protocol.methods import catalog, conversation, runtime, session
from vaala_protocol.methods.base import Request

_READERS: dict[type[Request[Any]], Any] = {
    runtime.RuntimeStatusParams: runtimes.status,
    catalog.ModelListParams: catalogs.model_list,
    catalog.ModelGetParams: catalogs.model_get,
    catalog.AgentListParams: catalogs.agent_list,
    catalog.AgentGetParams: catalogs.agent_get,
    catalog.ExecutorListParams: catalogs.executor_list,
    catalog.ExecutorGetParams: catalogs.executor_get,
    catalog.ConfigListParams: catalogs.config_list,
    catalog.ConfigGetParams: catalogs.config_get,
    conversation.ConversationListParams: conversations.list_,
    conversation.ConversationSearchParams: conversations.search,
    conversation.ConversationGetParams: conversations.get,
    session.SessionItemsParams: sessions.items,
}
"""Methods that only look; what they return is fit for clients: nothing secret is in it."""


class ApiViews:
    """A `vaala.server.transport.http.views.Views`."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def read(self, params: Request[Any]) -> object:
        self._api.clients.visited()
        return await _READERS[type(params)](self._api, params)

    def tools(self) -> object:
        self._api.clients.visited()
        specs = self._api.runtime.definitions.tools.specs
        return {"tools": [{"name": one.name, "description": one.description} for one in specs]}
