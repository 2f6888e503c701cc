"""``command/``: commands that run in the background of a conversation."""

from __future__ import annotations

from vaala.handle import ConversationHandle
from vaala.server.api.api import Api
from vaala.server.api.caller import Caller
from vaala.server.api.method import Method, command_lane, method, no_lane, view
from vaala_protocol.methods import command as wire
from vaala_protocol.methods.base import Done


async def list_(api: Api, params: wire.CommandListParams) -> wire.CommandListResult:
    talk = ConversationHandle(api.runtime, params.conversation_id)
    return wire.CommandListResult(commands=await talk.commands())


async def output(api: Api, params: wire.CommandOutputParams) -> wire.CommandOutputResult:
    talk = ConversationHandle(api.runtime, params.conversation_id)
    return await talk.command_output(params.command_id, params.offset, params.limit_bytes)


async def write(caller: Caller, params: wire.CommandWriteParams) -> Done:
    await _talk(caller, params).write_command(params.command_id, params.text)
    return Done()


async def resize(caller: Caller, params: wire.CommandResizeParams) -> Done:
    await _talk(caller, params).resize_command(params.command_id, params.columns, params.rows)
    return Done()


async def kill(caller: Caller, params: wire.CommandKillParams) -> Done:
    await _talk(caller, params).kill_command(params.command_id, params.signal)
    return Done()


def _talk(caller: Caller, params: wire.CommandParams) -> ConversationHandle:
    return ConversationHandle(caller.api.runtime, params.conversation_id)


METHODS: tuple[Method, ...] = (
    view(wire.CommandListParams, list_),
    view(wire.CommandOutputParams, output),
    method(wire.CommandWriteParams, write, command_lane),
    method(wire.CommandResizeParams, resize, command_lane),
    method(wire.CommandKillParams, kill, no_lane),
)
