"""The keys of the configuration files, and what each may hold. Pydantic stays in this package."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    StringConstraints,
    WithJsonSchema,
)

from vaala.agent.definition import Budgets
from vaala.agent.fitting import Compaction
from vaala.config.settings import ServerSettings
from vaala.models.base import Deadlines
from vaala.models.limits import PRICE_USD_MAX
from vaala.models.provider import Api, Trust
from vaala.telemetry.settings import LogSettings, TelemetrySettings

Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
"""What a user writes to choose a provider or an agent."""
Text = Annotated[str, StringConstraints(min_length=1)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ProxyUrl = Annotated[str, StringConstraints(pattern=r"^(none|https?://[^\s/]\S*)$")]
KeyringName = Annotated[str, StringConstraints(pattern=r"^[^/].*/[^/]+$")]
Seconds = Annotated[float, Field(gt=0, le=86_400)]
Count = Annotated[int, Field(ge=1)]
Dollars = Annotated[float, Field(ge=0, le=PRICE_USD_MAX)]


def _words(value: object) -> object:
    """Split a line as a shell would; raises ``ValueError`` for a quote that is left open."""
    return shlex.split(value) if isinstance(value, str) else value


CommandLine = Annotated[
    list[Text],
    Field(min_length=1),
    BeforeValidator(_words),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
"""A command and its arguments: a list, or a line."""

_DEADLINES = Deadlines()
_BUDGETS = Budgets()
_COMPACTION = Compaction()
_SERVER = ServerSettings()
_LOGS = LogSettings()
_TELEMETRY = TelemetrySettings()


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class DeadlinesSection(Section):
    connect_s: Seconds = _DEADLINES.connect_s
    """To reach the server."""
    first_byte_s: Seconds = _DEADLINES.first_byte_s
    """From the request to the first byte of the answer."""
    silence_s: Seconds = _DEADLINES.silence_s
    """Between two bytes of the answer; the whole has no limit."""


class PricesSection(Section):
    """In US dollars for a million tokens."""

    input: Dollars
    """Tokens that the model reads."""
    output: Dollars
    """Tokens that it writes, its reasoning included."""
    cache_read: Dollars | None = None
    """Tokens that are read from a cache; left out: as input."""
    cache_write: Dollars | None = None
    """Tokens that are read and put into a cache; left out: as input."""


class ModelSection(Section):
    """What a model is asked with where neither message, conversation nor agent says otherwise."""

    effort: Text | None = None
    """How hard it should think."""
    options: dict[str, Any] = {}
    """Fields of the request, by the provider's names."""


class ProviderSection(Section):
    base_url: Url
    """What the paths of the API are appended to."""
    api: Api = "chat"
    """The wire format: OpenAI-compatible chat completions, Anthropic Messages ("anthropic"),
    OpenAI Responses ("responses") or Gemini generateContent ("gemini")."""
    api_key: Text | None = None
    """The key itself; better to name a variable or a secret."""
    api_key_env: Text | None = None
    """The environment variable that holds the key."""
    api_key_secret: Text | None = None
    """The name of the key in secrets.yaml."""
    api_key_file: Text | None = None
    """A file whose only line is the key, read when it is first needed; it may begin with ~."""
    api_key_command: CommandLine | None = None
    """A command that prints the key, run without a shell when it is first needed."""
    api_key_keyring: KeyringName | None = None
    """SERVICE/USER of the key in the keyring of the system; needs vaala[keyring]."""
    headers: dict[Text, str] = {}
    """Sent with each request."""
    query: dict[Text, str] = {}
    """Parameters of the URL of each request."""
    proxy: ProxyUrl | None = None
    """The URL of a proxy, or none; left out: that of HTTPS_PROXY and the like."""
    ca_file: Text | None = None
    """Certificates in PEM form that count instead of the bundled ones."""
    trust: Trust | None = None
    """Whose certificates count: bundled, or those of the system."""
    models: list[Text] = []
    """The models that it offers, its default first; left out: any name is passed on."""
    windows: dict[Text, Count] = {}
    """The context window of a model, in tokens; left out: what its server or the catalogue says."""
    prices: dict[Text, PricesSection] = {}
    """What a model costs; left out: what its server or the catalogue says."""
    effort: Text | None = None
    """How hard its models should think where nobody says otherwise."""
    options: dict[str, Any] = {}
    """Fields of each request, by its names, where nobody sets them otherwise."""
    model_settings: dict[Text, ModelSection] = {}
    """Effort and options of one model, which go before those of all."""
    deadlines: DeadlinesSection = DeadlinesSection()
    """How long to wait for it, in seconds."""
    requests_max: Count | None = None
    """Calls that it gets at the same time, of all conversations together; left out: any number."""


class BudgetsSection(Section):
    """Bounds of one turn."""

    steps_max: Count = _BUDGETS.steps_max
    """Model calls."""
    tokens_max: Count | None = None
    """Tokens of all classes."""
    seconds_max: Seconds | None = None
    """Time in all."""
    command_foreground_s: Seconds = _BUDGETS.command_foreground_s
    """A command that takes longer goes on in the background."""


class CompactionSection(Section):
    """What happens when a conversation comes near the context window of its model."""

    auto: bool = _COMPACTION.auto
    """Let the model write a summary of the oldest turns; false: they are left out without one."""
    at: Annotated[float, Field(ge=0.2, le=1)] = _COMPACTION.at
    """The share of the window from which on requests are made shorter."""
    aim: Annotated[float, Field(ge=0.1, le=0.9)] = _COMPACTION.aim
    """The share of the window that they then have."""


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
    """How hard the model should think, in its own words."""
    options: dict[str, Any] = {}
    """Fields of the request to the model, by the provider's names."""
    mode: Literal["read-only", "ask", "auto-edit", "full"] | None = None
    """What it may do without asking; left out: ask."""
    tools: list[Text] | None = None
    """Names of the tools that it may use; left out: all."""
    budgets: BudgetsSection = BudgetsSection()
    """Bounds of one turn."""
    compaction: CompactionSection = CompactionSection()
    """What happens when a conversation comes near the context window of its model."""


class ProvidersFile(RootModel[dict[Name, ProviderSection]]):
    """providers.yaml: providers by name."""


class SecretsFile(RootModel[dict[Name, Text]]):
    """secrets.yaml: keys by name, for api_key_secret. Only its owner may be able to read it."""


class ModelsFile(Section):
    """models.yaml: which model runs, and which one makes titles."""

    default: Text | None = None
    """The model that runs when neither command line, session nor agent names one."""
    titles: Text | None = None
    """The model that makes titles of conversations; left out: their first words are the titles."""


class AgentsFile(RootModel[dict[Name, AgentSection]]):
    """agents.yaml: agents by name; one called "default" replaces the shipped one."""


class PermissionsFile(Section):
    """permissions.yaml: what agents may do without a question, and what they may not."""

    allow: list[Text] = []
    """Rules for calls that run without a question, whatever the mode."""
    ask: list[Text] = []
    """Rules for calls that a person is asked about, whatever the mode."""
    deny: list[Text] = []
    """Rules for calls that never run."""


class ServerFile(Section):
    """server.yaml: where the server listens, and whom it lets in."""

    host: Text = _SERVER.host
    """The address that it listens on."""
    port: Annotated[int, Field(ge=0, le=65_535)] = _SERVER.port
    """The port; when another program has it, or with 0, a free one is taken."""
    allowed_hosts: list[Text] = []
    """Names in a Host header that are accepted beside those of this machine."""
    allowed_origins: list[Url] = []
    """Origins of web pages that may connect beside the server's own."""
    idle_exit_minutes: Annotated[float, Field(ge=0, le=525_600)] = _SERVER.idle_exit_minutes
    """When a server that a client started ends, because nothing goes on; 0: never."""


class EnvironmentFile(Section):
    """environment.yaml: what commands get of the environment of the client."""

    forward: list[Variable] = []
    """Variables of the client that its commands get beside PATH and the like."""


class LogsSection(Section):
    level: Literal["debug", "info", "warning", "error"] = _LOGS.level
    """The least severe records that are written."""
    file_bytes_max: Annotated[int, Field(ge=65_536)] = _LOGS.file_bytes_max
    """A file that would grow beyond this is put aside and a new one begun."""
    files_max: Annotated[int, Field(ge=1, le=1_000)] = _LOGS.files_max
    """How many files are kept, the current one included."""


class TelemetryFile(Section):
    """telemetry.yaml: traces, metrics and logs."""

    enabled: bool | None = None
    """Whether traces and metrics are sent; left out: when OTEL_* variables say where to."""
    traces: bool = _TELEMETRY.traces
    """Send a span for each turn, model call, tool call and append."""
    metrics: bool = _TELEMETRY.metrics
    """Send counts of turns, tokens and calls, the time of appends, and what is open."""
    endpoint: Url | None = None
    """The base URL of an OTLP collector that speaks HTTP; left out: that of the variables."""
    headers: dict[Text, str] = {}
    """Sent with each export."""
    metrics_period_s: Seconds = _TELEMETRY.metrics_period_s
    """How often metrics are sent."""
    logs: LogsSection = LogsSection()
    """The log file."""


SCHEMAS: dict[str, type[BaseModel]] = {
    "providers.yaml": ProvidersFile,
    "secrets.yaml": SecretsFile,
    "models.yaml": ModelsFile,
    "agents.yaml": AgentsFile,
    "permissions.yaml": PermissionsFile,
    "server.yaml": ServerFile,
    "environment.yaml": EnvironmentFile,
    "telemetry.yaml": TelemetryFile,
}
"""The schema of each file, in the order in which the files are told."""
