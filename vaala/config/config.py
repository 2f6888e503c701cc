"""`Config`: what the files of the configuration directory say, checked and ready for use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from vaala.agent.definition import AgentDefinition
from vaala.config.errors import Problem
from vaala.config.settings import ServerSettings
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala.permissions.rules import Rules
from vaala.telemetry.settings import TelemetrySettings

DEFAULT_AGENT = "default"


class Config(Struct, frozen=True):
    directory: Path
    """Where it was looked for; it need not be there."""
    agents: Mapping[str, AgentDefinition]
    """By name; `DEFAULT_AGENT` is always among them."""
    providers: tuple[Provider, ...] = ()
    default_model: str | None = None
    titles: str | None = None
    """The model that makes titles."""
    unusable: Mapping[str, str] = {}
    """Providers that cannot be used now, by name, each with the reason and the way out."""
    key_variables: tuple[str, ...] = ()
    """Environment variables that hold keys: no command that an agent runs may see them."""
    rules: Rules = Rules()
    """What agents may do without a question, and what they may not."""
    server: ServerSettings = ServerSettings()
    forward: tuple[str, ...] = ()
    """Variables of a client that its conversations' local commands get as well."""
    telemetry: TelemetrySettings = TelemetrySettings()
    secrets: tuple[Secret, ...] = ()
    """Every secret that the files hold, so that no log shows one."""
    remarks: tuple[Problem, ...] = ()
    """What is no mistake but may surprise, such as a key that is not set."""


def default_instructions() -> str:
    """Return the instructions of the agent that is there without any configuration."""
    return Path(__file__).with_name("default_agent.md").read_text("utf-8").strip()


def default_agent() -> AgentDefinition:
    return AgentDefinition(
        name=DEFAULT_AGENT,
        description="Works on the files of a directory with a shell.",
        instructions=default_instructions(),
    )
