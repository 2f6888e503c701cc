"""Bounds that strict servers put on a request, each with where it comes from."""

from __future__ import annotations

MAX_BODY_BYTES = 20_000_000
"""Groq's documented bound of a request with images; proxies before other servers are near it."""

MAX_JSON_DEPTH = 127
"""Nested objects and arrays: serde_json stops at 128 levels, the scalar inside included."""

MAX_CALL_ID_CHARS = 40
"""OpenAI: "Expected a string with maximum length 40"."""

MAX_NAME_CHARS = 64
"""Function names and participant names in the OpenAI reference."""

MAX_TOOLS = 128
"""OpenAI: "Expected an array with maximum length 128"."""

MAX_STOP_SEQUENCES = 4
"""OpenAI reference, ``stop``."""
