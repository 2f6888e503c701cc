"""The bounds of this package, with their units in their names."""

from __future__ import annotations

SHELL_TEXT_BYTES_MAX = 64 * 1024
"""A command that is longer is not read: a person decides."""
SHELL_COMMANDS_MAX = 64
"""Simple commands in one shell command."""
RULES_KEPT_MAX = 1_000
"""Rules for commands whose words are kept; a configuration has some dozens."""
