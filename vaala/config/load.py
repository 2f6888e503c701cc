"""Reads the configuration directory as a whole: all of it is good, or none of it is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from vaala.config.config import DEFAULT_AGENT, Config, default_agent

FILES = (
    "providers.yaml",
    "secrets.yaml",
    "models.yaml",
    "agents.yaml",
    "permissions.yaml",
    "server.yaml",
    "environment.yaml",
    "telemetry.yaml",
)


def load_config(
    directory: Path,
    environ: Mapping[str, str],
    *,
    tools: Sequence[str] | None = None,
    instead: Mapping[str, bytes] | None = None,
) -> Config:
    """Read the files of ``directory``; what is not there is empty.

    ``environ`` is where ``api_key_env`` is looked up; ``tools`` are the names of all tools, where
    they are known: agents may name no others. ``instead`` has contents by the name of a file, to
    be taken for what is in it. Raises `ConfigError` that names file, line and key of every
    problem. Without any file neither YAML nor pydantic is imported.
    """
    # YAML and pydantic cost 0.2 s, which most starts need not pay.
    if not instead and not any((directory / name).exists() for name in FILES):
        return Config(directory=directory, agents={DEFAULT_AGENT: default_agent()})
    from vaala.config.build import build_config

    return build_config(directory, environ, tools, instead or {})
