"""Every rule of Gemini's generateContent, with its source.

A page of ai.google.dev is the reference; an issue quotes the error text of the API or of Vertex.
"""

from __future__ import annotations

from vaala.testing.validators.common import COMMON_RULES, Rule

_DOCS = "https://ai.google.dev"
_API = f"{_DOCS}/api/generate-content"
_CACHING = f"{_DOCS}/api/caching"
_GITHUB = "https://github.com"

KEYS_UNKNOWN = Rule("keys.unknown", f"{_GITHUB}/bigduu/Bodhi-AI/issues/52")
KEYS_TWICE = Rule("keys.twice", "https://protobuf.dev/programming-guides/json/ (field names)")
FIELD_TYPE = Rule("field.type", f"{_API} (request body)")
SAMPLING = Rule(
    "generation.range",
    f"{_GITHUB}/open-telemetry/opentelemetry-python-contrib (tests/cassettes/"
    "test_generate_content_invalid_temperature.yaml)",
)
GENERATION = Rule("generation.config", f"{_API} (GenerationConfig)")
THINKING = Rule("generation.thinking", f"{_DOCS}/gemini-api/docs/thinking")
RESPONSE_SCHEMA = Rule("generation.schema", f"{_API} (GenerationConfig.responseSchema)")
RESPONSE_CALLS = Rule("generation.calls", f"{_GITHUB}/google/adk-python/issues/5735")
SAFETY = Rule("safety", f"{_API} (SafetySetting)")

CONTENTS = Rule("contents.shape", f"{_API} (contents)")
ROLE = Rule("content.role", f"{_CACHING} (Content.role)")
PARTS_EMPTY = Rule("content.parts", f"{_GITHUB}/vercel/ai/issues/3775")
PART_DATA = Rule("part.data", f"{_GITHUB}/router-for-me/CLIProxyAPI/issues/1292")
PART_PLACE = Rule("part.place", f"{_CACHING} (Content)")
TEXT_BLANK = Rule("text.blank", f"{_GITHUB}/router-for-me/CLIProxyAPI/issues/3485")
SIGNATURE = Rule("part.signature", f"{_GITHUB}/crmne/ruby_llm/issues/521")
SIGNATURE_MISSING = Rule("part.signature_missing", f"{_DOCS}/gemini-api/docs/thought-signatures")
INLINE = Rule("part.inline_data", f"{_CACHING} (Blob)")
FILE = Rule("part.file_data", f"{_CACHING} (FileData)")
CALL = Rule("call.shape", f"{_CACHING} (FunctionCall)")
CALL_ID = Rule("call.id", f"{_CACHING} (FunctionCall.id, FunctionResponse.id)")
CALL_NAME = Rule("call.name", f"{_GITHUB}/google-gemini/gemini-cli/issues/2966")
RESPONSE = Rule("response.shape", f"{_GITHUB}/symfony/ai/pull/2040")
RESPONSE_NAME = Rule("response.name", f"{_GITHUB}/langflow-ai/langflow/issues/9437")

PAIRING_COUNT = Rule("pairing.count", f"{_GITHUB}/google-gemini/gemini-cli/issues/16415")
PAIRING_ORPHAN = Rule("pairing.orphan", f"{_GITHUB}/langchain-ai/langchain/issues/27799")
PAIRING_MATCH = Rule("pairing.match", f"{_DOCS}/gemini-api/docs/function-calling")
ORDER_CALL = Rule("order.call", f"{_GITHUB}/google-gemini/gemini-cli/issues/26486")
ORDER_LAST = Rule("order.last", f"{_GITHUB}/crewAIInc/crewAI/pull/6973")

TOOLS_SHAPE = Rule("tools.shape", f"{_CACHING} (Tool)")
TOOLS_NAME = Rule("tools.name", f"{_GITHUB}/kaitranntt/ccs/issues/25")
TOOLS_UNIQUE = Rule("tools.unique", f"{_CACHING} (FunctionDeclaration.name)")
TOOLS_PARAMETERS = Rule("tools.parameters", f"{_CACHING} (FunctionDeclaration.parameters)")
TOOLS_JSON_SCHEMA = Rule(
    "tools.json_schema", f"{_CACHING} (FunctionDeclaration.parametersJsonSchema)"
)
SCHEMA_UNKNOWN = Rule("schema.unknown", f"{_GITHUB}/openswarm-ai/openswarm/issues/24")
SCHEMA_TYPE = Rule("schema.type", f"{_GITHUB}/zed-industries/zed/issues/44875")
SCHEMA_ITEMS = Rule("schema.items", f"{_GITHUB}/anomalyco/opencode/pull/49392")
SCHEMA_ENUM = Rule("schema.enum", f"{_GITHUB}/decolua/9router/pull/380")
SCHEMA_VALUE = Rule("schema.value", f"{_CACHING} (Schema)")
SCHEMA_REQUIRED = Rule("schema.required", f"{_CACHING} (Schema.required)")
TOOL_CONFIG = Rule("tool_config", f"{_CACHING} (FunctionCallingConfig)")

GEMINI_RULES = (
    *COMMON_RULES,
    KEYS_UNKNOWN,
    KEYS_TWICE,
    FIELD_TYPE,
    SAMPLING,
    GENERATION,
    THINKING,
    RESPONSE_SCHEMA,
    RESPONSE_CALLS,
    SAFETY,
    CONTENTS,
    ROLE,
    PARTS_EMPTY,
    PART_DATA,
    PART_PLACE,
    TEXT_BLANK,
    SIGNATURE,
    SIGNATURE_MISSING,
    INLINE,
    FILE,
    CALL,
    CALL_ID,
    CALL_NAME,
    RESPONSE,
    RESPONSE_NAME,
    PAIRING_COUNT,
    PAIRING_ORPHAN,
    PAIRING_MATCH,
    ORDER_CALL,
    ORDER_LAST,
    TOOLS_SHAPE,
    TOOLS_NAME,
    TOOLS_UNIQUE,
    TOOLS_PARAMETERS,
    TOOLS_JSON_SCHEMA,
    SCHEMA_UNKNOWN,
    SCHEMA_TYPE,
    SCHEMA_ITEMS,
    SCHEMA_ENUM,
    SCHEMA_VALUE,
    SCHEMA_REQUIRED,
    TOOL_CONFIG,
)
