"""`Method`: the parameters of a method, the handler for them, and what it must not overtake."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct

from vaala.server.api.api import Api
from vaala.server.api.caller import Caller, Opened
from vaala_protocol.base import Value
from vaala_protocol.methods.base import Request

P = TypeVar("P", bound=Request[Any])

Lane: TypeAlias = Callable[[Any], Hashable]
"""Tells which requests are done in order: those of one client with an equal lane. None: no order.
"""
Outcome: TypeAlias = Value | Opened


class Urgent(Struct, frozen=True):
    """What a method does that is handled at once although something stands in front of it.

    It is handled before its turn and, unless it was refused, once more in its turn: what stood in
    front may have had an effect since that it was to come after.
    """

    is_answer: Callable[[Outcome], bool]
    """Tells whether what came of it at once is the answer; else the outcome in its turn is."""
    in_turn: Callable[[Caller, Any, Sequence[object]], Awaitable[Outcome]]
    """Gets the parameters of the requests that stood in front."""


class Method(Struct, frozen=True):
    params: type[Request[Any]]
    handle: Callable[[Caller, Any], Awaitable[Outcome]]
    """Raises `Refused` for what the client can act on; anything else is a bug."""
    lane: Lane
    bulky: bool = False
    """Its answer can be large: only a few of them are made for a client at the same time."""
    urgent: Urgent | None = None
    rest: Callable[[Caller, Any, Any], Awaitable[Outcome]] | None = None
    """Completes what ``handle`` returns, when the next one in the lane may begin: it only looks,
    and may take long."""

    @property
    def name(self) -> str:
        return self.params.method


def method(
    params: type[P], handle: Callable[[Caller, P], Awaitable[Outcome]], lane: Lane
) -> Method:
    """A method that needs to know the client."""
    return Method(params, handle, lane)


def view(params: type[P], read: Callable[[Api, P], Awaitable[Value]]) -> Method:
    """A method that only looks: no order, and the same for every client."""

    async def handle(caller: Caller, asked: P) -> Value:
        return await read(caller.api, asked)

    return Method(params, handle, no_lane, bulky=True)


def no_lane(params: Any) -> None:
    """Done as soon as it is read."""


def conversation_lane(params: Any) -> Hashable:
    """What changes a conversation or its sessions, in the order in which it was asked."""
    return "conversation", params.conversation_id


def decision_lane(params: Any) -> Hashable:
    """What decides one approval or question. It waits for nothing else of its conversation, whose
    next change may take as long as a turn that is to end."""
    decision_id = getattr(params, "approval_id", None) or params.question_id
    return "decision", params.conversation_id, decision_id


def config_lane(params: Any) -> Hashable:
    """What changes the configuration."""
    return "config"


def watch_lane(params: Any) -> Hashable:
    """Beginning and ending to watch the same thing: a conversation, or all of them."""
    return "watch", getattr(params, "conversation_id", None)


def command_lane(params: Any) -> Hashable:
    """What is written to one command, in the order in which it was asked."""
    return "command", params.conversation_id, params.command_id
