"""``client/``: what a client offers to do for a conversation."""

from __future__ import annotations

from vaala.server.api.caller import Caller
from vaala.server.api.method import Method, conversation_lane, method, no_lane
from vaala_protocol.errors import BadRequest
from vaala_protocol.methods import client as wire
from vaala_protocol.methods.base import Done


async def environment(caller: Caller, params: wire.ClientEnvironmentParams) -> Done:
    caller.runs_in(params.environment)
    return Done()


async def offer(caller: Caller, params: wire.ClientOfferParams) -> wire.ClientOfferResult:
    if not caller.peer.local and (params.files is not None or params.terminal):
        raise BadRequest(
            "files and terminals are taken from clients on the server's own machine only: they "
            "stand for those of this machine; offer tools instead"
        )
    return wire.ClientOfferResult(offer_id=await caller.offers.make(caller.name, params))


async def withdraw(caller: Caller, params: wire.ClientWithdrawParams) -> Done:
    caller.offers.withdraw(params.offer_id)
    return Done()


METHODS: tuple[Method, ...] = (
    method(wire.ClientEnvironmentParams, environment, no_lane),
    method(wire.ClientOfferParams, offer, conversation_lane),
    method(wire.ClientWithdrawParams, withdraw, no_lane),
)
