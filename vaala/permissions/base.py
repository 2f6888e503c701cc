"""What a tool call would do, and who decides whether it may."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from vaala_protocol.calls import CallDetails
from vaala_protocol.items import ApprovalOption
from vaala_protocol.settings import Mode

AccessKind: TypeAlias = Literal["none", "read", "edit", "execute", "network", "other"]


class Access(Struct, frozen=True):
    """The effect of a call, told by its tool before it runs.

    ``none`` touches nothing outside the runtime; ``other`` is what only its tool knows. ``subject``
    is what a rule may name: the command, the path, the URL, the arguments. ``outside`` tells that
    a path lies outside the workspace's roots.
    """

    kind: AccessKind
    subject: str = ""
    outside: bool = False
    other_names: tuple[str, ...] = ()
    """Other paths of the same thing (absolute, or through links), by which a rule may deny it."""


class PermissionRequest(Struct, frozen=True):
    tool: str
    access: Access
    details: CallDetails
    mode: Mode
    session_id: str
    grants: Sequence[str] = ()
    """Rules that a person granted to this session: ``tool`` or ``tool(subject)``; one with ``!``
    before it denies."""
    can_keep: bool = False
    """A rule can be written into the configuration, for good."""


class Allow(Struct, frozen=True):
    reason: str


class Deny(Struct, frozen=True):
    reason: str
    """For the model and the user: what refused it, and the way out."""


class Ask(Struct, frozen=True):
    """A person decides between ``options``, at least one; ``reason`` says why they are asked."""

    options: tuple[ApprovalOption, ...]
    reason: str = ""

    def __post_init__(self) -> None:
        """Raise TypeError for what no person could answer."""
        given: Any = self.options  # callers need not use a type checker
        if not isinstance(given, tuple) or not given:
            raise TypeError(f"Ask needs a tuple of at least one ApprovalOption, not {given!r}")
        options: tuple[Any, ...] = given
        wrong = [one for one in options if type(one) is not ApprovalOption]
        if wrong:
            raise TypeError(f"Ask needs options that are ApprovalOption, not {wrong[0]!r}")


Decision: TypeAlias = Allow | Deny | Ask


class PermissionGate(ABC):
    """Decides each call. Shared by all sessions; keeps no state of theirs."""

    @abstractmethod
    async def decide(self, request: PermissionRequest) -> Decision:
        """Decide; an exception counts as a denial that names the gate's failure."""
