"""What a runtime is made of, and what a session needs of the conversation around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from vaala.agent.definition import AgentDefinition
from vaala.dao.store import ConversationLog
from vaala.models.base import Models
from vaala.observer import Observer
from vaala.permissions.base import PermissionGate
from vaala.services.environment import Environment
from vaala.services.registry import Services
from vaala.stream import EventStream
from vaala.tools.registry import ToolSet
from vaala.waits import WaitGraph
from vaala_executors.workspace import Workspace
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import Approval, Item, Question
from vaala_protocol.state import Location

if TYPE_CHECKING:
    from vaala.session import Session


class Definitions(Struct, frozen=True):
    """Shared by every conversation of a runtime; replaced as a whole, never changed."""

    agents: Mapping[str, AgentDefinition]
    models: Models
    tools: ToolSet
    gate: PermissionGate
    instance: str
    """Names this run of the runtime."""
    withheld: tuple[str, ...] = ()
    """Variables that no command may see, besides the keys that are always known."""
    observer: Observer = Observer()
    """Is told what turns, model calls, tool calls and appends there are."""
    titles: str | None = None
    """The model that makes titles, by its name; None: titles are first words."""
    keep_rule: Callable[[str], Awaitable[None]] | None = None
    """Writes a rule that a person allows for good into the configuration; raises `Refused`. None:
    there is none, and no such answer is offered."""
    rng: Callable[[], Random] = Random
    """Makes what the jitter of a turn's retries is drawn from; a simulation gives its seed."""

    def agent(self, name: str) -> AgentDefinition:
        """Return an agent's definition; raises `BadRequest` that lists those there are."""
        if name not in self.agents:
            known = ", ".join(sorted(self.agents)) or "none"
            raise BadRequest(f"no agent {name!r}; there are: {known}")
        return self.agents[name]


class Surroundings(Protocol):
    """A conversation, as its sessions see it. Nothing here waits for the conversation's loop."""

    @property
    def definitions(self) -> Definitions: ...

    @property
    def log(self) -> ConversationLog: ...

    @property
    def stream(self) -> EventStream: ...

    @property
    def wait_graph(self) -> WaitGraph: ...

    @property
    def locations(self) -> tuple[Location, ...]: ...

    @property
    def sessions(self) -> dict[str, Session]:
        """Open sessions by id; a session puts itself in and takes itself out."""
        ...

    @property
    def services(self) -> Services:
        """What clients do for the conversation."""
        ...

    @property
    def environment(self) -> Environment:
        """What the client that spoke last runs in."""
        ...

    async def workspace(self) -> Workspace:
        """Return the primary workspace, opened at first use."""
        ...

    def noted(self) -> None:
        """Something of a session was written down. Cheap."""
        ...

    def first_turn(self, session: Session, items: Sequence[Item]) -> None:
        """The first turn of a session has begun, with these items."""
        ...

    def session_changed(self) -> None:
        """A turn began or ended: the status may have changed."""
        ...

    def decision_changed(self, session: Session, decision: Approval | Question) -> None:
        """An approval or question of a session waits for a person, or was settled.

        Told to the inbox of the runtime, and so to whoever offered to put questions to the person.
        """
        ...

    def session_closed(self, session_id: str) -> None:
        """A session has ended, however that came: nothing of it waits any more."""
        ...
