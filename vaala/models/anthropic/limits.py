"""The bounds of this wire format, with their units in their names."""

from __future__ import annotations

REPLAY_BYTES_MAX = 256 * 1024
"""Signatures and opaque blocks that are kept with an answer; one with more is sent back without.
The entry of the log that holds them has room for four times as much."""

BUDGET_TOKENS_MIN = 1024
"""The least thinking budget; a budget must also be less than ``max_tokens``
(platform.claude.com/docs/en/build-with-claude/extended-thinking)."""

ANSWER_TOKENS_MIN = 1024
"""What a thinking budget leaves of ``max_tokens`` for the answer."""

PROPERTY_NAME_CHARS_MAX = 64
"""Of a property of a tool's input."""

ARGUMENTS_DEPTH_MAX = 64
"""Objects and arrays inside each other in the arguments of a past call; readers of JSON give up at
some depth, and what is deeper is sent as text."""
