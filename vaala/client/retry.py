"""What can be asked again when nobody knows whether it was done, and how long to wait between."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from vaala.client import limits
from vaala_protocol.methods import catalog, command, conversation, runtime, session
from vaala_protocol.methods.base import Request

_READS: frozenset[type[Request[Any]]] = frozenset({
    runtime.RuntimeStatusParams,
    runtime.RuntimeUsageParams,
    conversation.ConversationListParams,
    conversation.ConversationSearchParams,
    conversation.ConversationGetParams,
    conversation.ConversationUsageParams,
    session.SessionItemsParams,
    session.SessionTurnParams,
    command.CommandListParams,
    command.CommandOutputParams,
    catalog.ModelListParams,
    catalog.ModelGetParams,
    catalog.ModelResolveParams,
    catalog.AgentListParams,
    catalog.AgentGetParams,
    catalog.ExecutorListParams,
    catalog.ExecutorGetParams,
    catalog.ConfigListParams,
    catalog.ConfigGetParams,
})  # fmt: skip


def can_repeat(params: Request[Any]) -> bool:
    """Tell whether a request does no more when it is done twice than when it is done once."""
    match params:
        case session.SessionSendParams():
            return True  # its client id finds the first one
        case conversation.ConversationCreateParams(client_id=client_id):
            return client_id is not None
        case _:
            return type(params) in _READS


def pauses_s() -> Iterator[float]:
    """Yield the pauses between attempts: longer and longer, and never the same for many clients
    that have lost the same server."""
    longest = limits.RECONNECT_FIRST_S
    while True:
        yield random.uniform(0.0, longest)
        longest = min(2 * longest, limits.RECONNECT_MAX_S)
