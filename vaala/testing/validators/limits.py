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

CLAUDE_MAX_BODY_BYTES = 32_000_000
"""Anthropic: a larger one is answered by 413 (platform.claude.com/docs/en/api/errors)."""

CLAUDE_MAX_CACHE_BREAKPOINTS = 4
"""Anthropic: "A maximum of 4 blocks with cache_control may be provided"."""

CLAUDE_MIN_THINKING_TOKENS = 1_024
"""Anthropic reference, ``thinking.budget_tokens``."""

CLAUDE_MAX_IMAGES = 100
"""Anthropic: images in one request (platform.claude.com/docs/en/build-with-claude/vision)."""

CLAUDE_MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""Anthropic: one image; the same page."""

CLAUDE_MAX_PROPERTY_CHARS = 64
"""Anthropic: "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'"."""

RESPONSES_MAX_ID_CHARS = 64
"""OpenAI: "Expected a string with maximum length 64", of ``call_id`` and of item ids."""

RESPONSES_MIN_OUTPUT_TOKENS = 16
"""OpenAI: "integer below minimum value. Expected a value >= 16"."""

RESPONSES_MAX_OUTPUT_CHARS = 10_485_760
"""OpenAI reference, ``output`` of a function call output."""

RESPONSES_MAX_METADATA = 16
"""OpenAI reference, ``metadata``: pairs."""

GEMINI_MAX_BODY_BYTES = 20_000_000
"""Gemini: a request with data inside (ai.google.dev/gemini-api/docs/image-understanding)."""

GEMINI_MAX_NAME_CHARS = 64
"""Gemini: "with a maximum length of 64", of a function's name."""

GEMINI_MAX_STOP_SEQUENCES = 5
"""Gemini reference, ``stopSequences``."""

GEMINI_MAX_CANDIDATES = 8
"""Gemini reference, ``candidateCount``."""
