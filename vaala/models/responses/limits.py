"""The bounds of this wire format, with their units in their names."""

from __future__ import annotations

TOOLS_MAX = 128
"""OpenAI: "Expected an array with maximum length 128"; xAI says the same
(reference.langchain.com/javascript/langchain-xai/XAIResponsesCreateParams)."""

OUTPUT_TOKENS_MIN = 16
"""OpenAI: "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16"."""

OUTPUT_ITEMS_MAX = 4096
"""Items of one answer: messages, pieces of reasoning, calls."""

MODELS_REMEMBERED_MAX = 256
"""Models of a provider of which it is remembered what they refuse."""
