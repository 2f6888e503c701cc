"""``conversation/``: making, finding, watching and keeping conversations."""

from __future__ import annotations

import os

from vaala.handle import ConversationHandle
from vaala.server import limits
from vaala.server.api.api import Api
from vaala.server.api.caller import Caller, Opened
from vaala.server.api.fitting import page_limit
from vaala.server.api.method import (
    Method,
    conversation_lane,
    method,
    no_lane,
    view,
    watch_lane,
)
from vaala.usage import conversation_usage
from vaala_protocol.errors import BadRequest
from vaala_protocol.methods import conversation as wire
from vaala_protocol.methods.base import Done
from vaala_protocol.pages import ConversationPage, ConversationRow, SearchPage
from vaala_protocol.state import ConversationInfo
from vaala_protocol.usage import ConversationSpent


def _talk(caller: Caller, conversation_id: str) -> ConversationHandle:
    return ConversationHandle(caller.api.runtime, conversation_id)


def _absolute(path: str, what: str) -> str:
    """Return a path; raises `BadRequest` for one that would begin at the server's directory."""
    if not os.path.isabs(path):
        raise BadRequest(f"the {what} {path!r} is not absolute", field=what)
    return path


async def list_(api: Api, params: wire.ConversationListParams) -> ConversationPage:
    limit = page_limit(params.limit, limits.LIST_ROWS_MAX)
    return await api.runtime.store.list(params.query, params.cursor, limit)


async def search(api: Api, params: wire.ConversationSearchParams) -> SearchPage:
    limit = page_limit(params.limit, limits.LIST_ROWS_MAX)
    return await api.runtime.store.search(params.text, params.cursor, limit)


async def get(api: Api, params: wire.ConversationGetParams) -> ConversationRow:
    row = await api.runtime.store.get(params.conversation_id)
    if row is not None:
        return row
    # One that nobody has said anything in is in no list.
    talk = ConversationHandle(api.runtime, params.conversation_id)
    return ConversationRow(info=await talk.info())


async def usage(caller: Caller, params: wire.ConversationUsageParams) -> ConversationSpent:
    store = caller.api.runtime.store
    return await conversation_usage(store, params.conversation_id, caller.known, params.since)


async def subscribe(caller: Caller, params: wire.ConversationSubscribeParams) -> Opened:
    result, watch = await caller.watches.watch(params)
    return Opened(result, watch.begin)


async def unsubscribe(caller: Caller, params: wire.ConversationUnsubscribeParams) -> Done:
    caller.watches.leave(params.conversation_id)
    return Done()


async def rename(caller: Caller, params: wire.ConversationRenameParams) -> ConversationInfo:
    return await _talk(caller, params.conversation_id).update(title=params.title)


async def update(caller: Caller, params: wire.ConversationUpdateParams) -> ConversationInfo:
    directory = params.directory
    return await _talk(caller, params.conversation_id).update(
        directory=None if directory is None else _absolute(directory, "directory"),
        tags=params.tags,
    )


async def archive(caller: Caller, params: wire.ConversationArchiveParams) -> ConversationInfo:
    return await _talk(caller, params.conversation_id).update(archived=params.archived)


async def create(caller: Caller, params: wire.ConversationCreateParams) -> ConversationInfo:
    local = params.executor == "local"
    made = await caller.api.runtime.create_conversation(
        directory=_absolute(params.directory, "directory") if local else params.directory,
        executor=params.executor,
        agent=params.agent,
        settings=params.settings,
        title=params.title,
        ephemeral=params.ephemeral,
        client_id=params.client_id,
    )
    return await made.info()


async def fork(caller: Caller, params: wire.ConversationForkParams) -> ConversationInfo:
    runtime = caller.api.runtime
    return await (await runtime.fork_conversation(params.conversation_id, params.turn_id)).info()


async def delete(caller: Caller, params: wire.ConversationDeleteParams) -> Done:
    await caller.api.runtime.delete_conversation(params.conversation_id)
    return Done()


async def export(
    caller: Caller, params: wire.ConversationExportParams
) -> wire.ConversationExportResult:
    path = _absolute(params.path, "path")
    size = await caller.api.runtime.export_conversation(params.conversation_id, path)
    return wire.ConversationExportResult(size_bytes=size)


async def import_(caller: Caller, params: wire.ConversationImportParams) -> ConversationInfo:
    path = _absolute(params.path, "path")
    return await (await caller.api.runtime.import_conversation(path)).info()


METHODS: tuple[Method, ...] = (
    method(wire.ConversationCreateParams, create, no_lane),
    view(wire.ConversationListParams, list_),
    view(wire.ConversationSearchParams, search),
    view(wire.ConversationGetParams, get),
    Method(wire.ConversationUsageParams, usage, no_lane, bulky=True),
    Method(wire.ConversationSubscribeParams, subscribe, watch_lane, bulky=True),
    method(wire.ConversationUnsubscribeParams, unsubscribe, watch_lane),
    method(wire.ConversationRenameParams, rename, conversation_lane),
    method(wire.ConversationUpdateParams, update, conversation_lane),
    method(wire.ConversationArchiveParams, archive, conversation_lane),
    method(wire.ConversationForkParams, fork, conversation_lane),
    method(wire.ConversationDeleteParams, delete, conversation_lane),
    method(wire.ConversationExportParams, export, no_lane),
    method(wire.ConversationImportParams, import_, no_lane),
)
