"""The keys of the configuration files, and what each may hold. Pydantic stays in this package."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, RootModel, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""What a user writes to choose a provider or an agent."""
Text = Annotated[str, StringConstraints(min_length=1)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1)]


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DeadlinesSection(Section):
    connect_s: Seconds | None = None
    """To reach the server."""
    first_byte_s: Seconds | None = None
    """From the request to the first byte of the answer."""
    silence_s: Seconds | None = None
    """Between two bytes of the answer; the whole has no limit."""


class ProviderSection(Section):
    base_url: Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]")]
    """What the paths of the API are appended to."""
    api: Literal["chat"] = "chat"
    """The wire format: OpenAI-compatible chat completions."""
    api_key: Text | None = None
    """The key itself; better to name a variable with api_key_env."""
    api_key_env: Text | None = None
    """The environment variable that holds the key."""
    headers: dict[Text, str] = {}
    """Sent with each request."""
    models: list[Text] = []
    """The models that it offers, its default first; left out: any name is passed on."""
    windows: dict[Text, Count] = {}
    """The context window of a model, in tokens."""
    deadlines: DeadlinesSection = DeadlinesSection()


class BudgetsSection(Section):
    """Bounds of one turn."""

    steps_max: Count | None = None
    tokens_max: Count | None = None
    seconds_max: Seconds | None = None
    command_foreground_s: Seconds | None = None
    """A command that takes longer goes on in the background."""


class AgentSection(Section):
    description: str = ""
    """One line for people and for agents that choose a helper."""
    instructions: Text | None = None
    """The system prompt; left out, with no file: the one that is shipped."""
    instructions_file: Text | None = None
    """A file that holds the instructions, relative to the configuration directory."""
    model: Text | None = None
    """The model that it uses, "provider/model"; left out: the default model."""
    effort: Text | None = None
    options: dict[str, Any] = {}
    """Passed to the model as they are."""
    mode: Literal["read-only", "ask", "auto-edit", "full"] | None = None
    """What it may do without asking."""
    tools: list[Text] | None = None
    """Names of the tools that it may use; left out: all."""
    budgets: BudgetsSection = BudgetsSection()


class ModelsFile(Section):
    """models.yaml"""

    default: Text | None = None
    """The model that runs when neither command line, session nor agent names one."""


class ProvidersFile(RootModel[dict[Name, ProviderSection]]):
    """providers.yaml: providers by name."""


class AgentsFile(RootModel[dict[Name, AgentSection]]):
    """agents.yaml: agents by name; one called "default" replaces the shipped one."""
