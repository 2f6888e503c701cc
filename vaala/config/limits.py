"""The bounds of this package, with their units in their names."""

from __future__ import annotations

CONFIG_FILE_BYTES_MAX = 1024 * 1024
CONFIG_VALUES_MAX = 100_000
"""An alias repeats what it stands for, so that a small file can hold very many values."""
VALUE_DEPTH_MAX = 64
"""Levels of mappings and lists in a file: ours need a handful, and each costs stack."""
INSTRUCTIONS_BYTES_MAX = 64 * 1024
"""Instructions go with every request; longer ones leave little room for the work."""
FOUND_CHARS_MAX = 80
"""How much of a wrong value an error quotes."""
EDIT_ATTEMPTS_MAX = 20
"""How often an edit begins anew because the file was changed meanwhile."""
LOCK_WAIT_S = 5.0
LOCK_POLL_S = 0.02
"""An edit holds the lock for some milliseconds."""
