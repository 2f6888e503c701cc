"""Agent definitions: who does the work, with what, and how much of it."""

from __future__ import annotations

from msgspec import Struct

from vaala.agent.fitting import Compaction
from vaala_protocol.settings import Settings


class Budgets(Struct, frozen=True):
    """Bounds of one turn; None: no bound of that kind."""

    steps_max: int = 200
    tokens_max: int | None = None
    """Tokens of all classes that the models of the turn report."""
    seconds_max: float | None = None
    command_foreground_s: float = 120.0
    """A command that takes longer goes on in the background."""


class AgentDefinition(Struct, frozen=True):
    name: str
    instructions: str
    """The system prompt, without what the runtime adds (directory, date, platform)."""
    description: str = ""
    settings: Settings = Settings()
    """What a session of this agent starts with; its model may be None: the runtime chooses."""
    tools: tuple[str, ...] | None = None
    """Names of the tools that it may use; None: all."""
    budgets: Budgets = Budgets()
    compaction: Compaction = Compaction()
