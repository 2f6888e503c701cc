"""Configuration: a directory of YAML files, loaded and checked as a whole."""

from vaala.config.config import DEFAULT_AGENT, Config, default_agent
from vaala.config.errors import ConfigError, Problem
from vaala.config.load import load_config

__all__ = [
    "DEFAULT_AGENT",
    "Config",
    "ConfigError",
    "Problem",
    "default_agent",
    "load_config",
]
