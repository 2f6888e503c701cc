"""From checked files to `Config`: looks up keys, reads instructions, fills in what is shipped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from vaala.config.build_agents import build_agents
from vaala.config.build_permissions import build_rules
from vaala.config.build_providers import (
    build_providers,
    key_problems,
    key_remarks,
    key_variables,
    openness,
    setting_problems,
    unusable,
)
from vaala.config.build_routes import route_problems
from vaala.config.check import problem
from vaala.config.config import DEFAULT_AGENT, Config, default_agent
from vaala.config.errors import ConfigError, Problem
from vaala.config.read import Checked, Reader
from vaala.config.schema import (
    AgentsFile,
    EnvironmentFile,
    ModelsFile,
    PermissionsFile,
    ProvidersFile,
    SecretsFile,
    ServerFile,
    TelemetryFile,
)
from vaala.config.settings import ServerSettings
from vaala.models.secret import Secret
from vaala.permissions.rules import Rules
from vaala.telemetry.installed import installed
from vaala.telemetry.settings import LogSettings, TelemetrySettings


def build_config(
    directory: Path,
    environ: Mapping[str, str],
    tools: Sequence[str] | None,
    instead: Mapping[str, bytes],
) -> Config:
    """Read, check and build; raises `ConfigError` with the problems of all files."""
    reader = Reader(directory, instead)
    providers = reader.read("providers.yaml", ProvidersFile)
    secrets = reader.read("secrets.yaml", SecretsFile)
    models = reader.read("models.yaml", ModelsFile)
    agents = reader.read("agents.yaml", AgentsFile)
    permissions = reader.read("permissions.yaml", PermissionsFile)
    server = reader.read("server.yaml", ServerFile)
    environment = reader.read("environment.yaml", EnvironmentFile)
    telemetry = reader.read("telemetry.yaml", TelemetryFile)
    problems = reader.problems
    rules = build_rules(permissions, problems) if permissions else Rules()
    definitions = build_agents(agents, tools, problems) if agents else {}
    if "secrets.yaml" not in instead:  # what is about to be written gets the right mode
        problems.extend(openness(directory / "secrets.yaml"))
    if providers and secrets:
        problems.extend(key_problems(providers, secrets.values.root))
    if providers:
        problems.extend(setting_problems(providers))
        problems.extend(route_problems(providers))
    if telemetry:
        problems.extend(_telemetry_problems(telemetry))
    if problems or not (providers and secrets and models and server and environment and telemetry):
        raise ConfigError(problems)
    built = build_providers(providers, secrets.values.root, environ)
    sent = _telemetry(telemetry.values)
    return Config(
        directory=directory,
        agents={DEFAULT_AGENT: default_agent(), **definitions},
        providers=built,
        default_model=models.values.default,
        titles=models.values.titles,
        unusable=unusable(providers, environ),
        key_variables=key_variables(providers),
        rules=rules,
        server=_server(server.values),
        forward=tuple(environment.values.forward),
        telemetry=sent,
        secrets=(
            *map(Secret, secrets.values.root.values()),
            *(secret for provider in built for secret in provider.secrets),
            *sent.headers.values(),
        ),
        remarks=tuple(key_remarks(providers, environ)),
    )


def _server(file: ServerFile) -> ServerSettings:
    return ServerSettings(
        host=file.host,
        port=file.port,
        allowed_hosts=tuple(file.allowed_hosts),
        allowed_origins=tuple(file.allowed_origins),
        idle_exit_minutes=file.idle_exit_minutes,
    )


def _telemetry(file: TelemetryFile) -> TelemetrySettings:
    return TelemetrySettings(
        enabled=file.enabled,
        traces=file.traces,
        metrics=file.metrics,
        endpoint=file.endpoint,
        headers={name: Secret(value) for name, value in file.headers.items()},
        metrics_period_s=file.metrics_period_s,
        logs=LogSettings(**file.logs.model_dump()),
    )


def _telemetry_problems(file: Checked[TelemetryFile]) -> Iterator[Problem]:
    """Look for the libraries without importing them, which would cost a good part of a second."""
    if file.values.enabled and not installed():
        text = "traces and metrics need further libraries: pip install 'vaala[telemetry]'"
        yield problem(file.document, ("enabled",), text)
