"""The methods of the examples of JSON-RPC 2.0, and a pair of peers that know them."""

from __future__ import annotations

from typing import Any

from vaala_protocol.base import Value, decode
from vaala_protocol.limits import ANSWER_BYTES_MAX, MESSAGE_BYTES_MAX
from vaala_protocol.methods.base import Done, Notification, Request
from vaala_protocol.rpc import Call, Incoming, Peer, Reply


class Difference(Value, frozen=True, kw_only=True):
    value: int


class SubtractParams(Value, Request[Difference], frozen=True, kw_only=True):
    method = "subtract"
    result = Difference

    minuend: int
    subtrahend: int


class GetDataParams(Value, Request[Done], frozen=True, kw_only=True):
    method = "get_data"
    result = Done


class UpdateNotification(Value, Notification, frozen=True, kw_only=True):
    method = "update"

    values: tuple[int, ...] = ()


def sums_peer(
    *, message_bytes_max: int = MESSAGE_BYTES_MAX, sent_bytes_max: int = ANSWER_BYTES_MAX
) -> Peer:
    return Peer(
        {kind.method: kind for kind in (SubtractParams, GetDataParams)},
        {UpdateNotification.method: UpdateNotification},
        message_bytes_max=message_bytes_max,
        sent_bytes_max=sent_bytes_max,
    )


def exchange(peer: Peer, message: bytes | str) -> list[Any]:
    """Give a message to a peer, compute what it asks for, and return all that is sent back."""
    received = peer.receive(message)
    sent = [decode(one.data) for one in received if isinstance(one, Reply)]
    answers = [_computed(peer, one) for one in received if isinstance(one, Call)]
    return sent + [decode(answer) for answer in answers if answer is not None]


def _computed(peer: Peer, call: Call) -> bytes | None:
    result: Value = Done()
    if isinstance(call.params, SubtractParams):
        result = Difference(value=call.params.minuend - call.params.subtrahend)
    return peer.answer(call.id, result)


def errors(sent: list[Any]) -> list[tuple[Any, int]]:
    """Return the ids and error codes of answers that were sent alone or in an array."""
    flat = [one for each in sent for one in (each if isinstance(each, list) else [each])]
    return [(one["id"], one["error"]["code"]) for one in flat]


def kinds(received: list[Incoming]) -> list[str]:
    return [type(one).__name__ for one in received]
