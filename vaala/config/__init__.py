"""Configuration: a directory of YAML files, loaded and checked as a whole."""

from vaala.config.config import DEFAULT_AGENT, Config, default_agent
from vaala.config.errors import ConfigError, Problem
from vaala.config.load import load_config
from vaala.config.paths import config_directory, data_directory, state_directory

__all__ = [
    "DEFAULT_AGENT",
    "Config",
    "ConfigError",
    "Problem",
    "config_directory",
    "data_directory",
    "default_agent",
    "load_config",
    "state_directory",
]
