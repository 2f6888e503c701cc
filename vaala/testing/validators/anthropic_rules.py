"""Every rule of the Messages API, with its source.

A page of platform.claude.com is the reference; an issue quotes the error text of the API, or of
Bedrock and Vertex, which run the same check.
"""

from __future__ import annotations

from vaala.testing.validators.common import COMMON_RULES, Rule

_DOCS = "https://platform.claude.com/docs/en"
_API = f"{_DOCS}/api/messages/create"
_GITHUB = "https://github.com"

KEYS_UNKNOWN = Rule("keys.unknown", f"{_GITHUB}/amrit110/oli/issues/7")
KEYS_MISSING = Rule("keys.missing", f"{_API} (model, max_tokens, messages)")
MODEL = Rule("model", f"{_API} (model)")
MAX_TOKENS = Rule("max_tokens.range", f"{_API} (max_tokens)")
SAMPLING = Rule("sampling.range", f"{_API} (temperature, top_p, top_k)")
FIELD_TYPE = Rule("field.type", _API)
STOP = Rule("stop_sequences", f"{_GITHUB}/BerriAI/litellm/issues/3286")
OUTPUT_SCHEMA = Rule("output_config.schema", f"{_GITHUB}/veryfront/veryfront-code/pull/3921")

THINKING = Rule("thinking.shape", f"{_API} (thinking)")
THINKING_BUDGET = Rule("thinking.budget", f"{_API} (thinking.budget_tokens)")
THINKING_SAMPLING = Rule("thinking.sampling", f"{_GITHUB}/MartialBE/one-hub/issues/529")
THINKING_CHOICE = Rule("thinking.tool_choice", f"{_GITHUB}/can1357/oh-my-pi/issues/341")
THINKING_BLOCK = Rule("thinking.block", f"{_GITHUB}/earendil-works/pi/pull/1523")
THINKING_LAST = Rule("thinking.last", f"{_GITHUB}/tailcallhq/forgecode/issues/2107")
THINKING_FIRST = Rule("thinking.first", f"{_GITHUB}/n8n-io/n8n/issues/22550")
THINKING_OFF = Rule("thinking.off", f"{_GITHUB}/BerriAI/litellm/pull/18929")

MESSAGES = Rule("messages.shape", f"{_API} (messages)")
MESSAGE_KEYS = Rule("message.keys", f"{_API} (messages)")
ROLE = Rule("message.role", f"{_API} (messages.role)")
CONTENT_TYPE = Rule("content.type", f"{_API} (messages.content)")
CONTENT_EMPTY = Rule("content.empty", f"{_GITHUB}/anthropics/claude-code/issues/6774")
TEXT_BLANK = Rule("text.blank", f"{_GITHUB}/home-assistant/core/issues/175637")
BLOCK_TYPE = Rule("block.type", f"{_API} (messages.content)")
BLOCK_KEYS = Rule("block.keys", f"{_GITHUB}/anthropics/claude-code/issues/4378")
IMAGE = Rule("image.source", f"{_GITHUB}/anthropics/claude-code/issues/3073")
IMAGE_LIMITS = Rule("image.limits", f"{_DOCS}/build-with-claude/vision")
DOCUMENT = Rule("document.source", f"{_DOCS}/build-with-claude/pdf-support")

TOOL_ID = Rule("tool_use.id", f"{_GITHUB}/router-for-me/CLIProxyAPI/pull/1875")
TOOL_NAME = Rule("tool_use.name", f"{_DOCS}/agents-and-tools/tool-use/define-tools (name)")
TOOL_INPUT = Rule("tool_use.input", f"{_DOCS}/agents-and-tools/tool-use/handle-tool-calls")
RESULT = Rule("tool_result.shape", f"{_DOCS}/agents-and-tools/tool-use/handle-tool-calls")
RESULT_ERROR = Rule("tool_result.error", f"{_GITHUB}/vellum-ai/vellum-assistant/pull/18387")

PAIRING_MISSING = Rule("pairing.missing", f"{_GITHUB}/anthropics/claude-code/issues/8210")
PAIRING_ORPHAN = Rule("pairing.orphan", f"{_GITHUB}/anthropics/claude-code/issues/18947")
PAIRING_SERVER = Rule("pairing.server", f"{_GITHUB}/anthropics/claude-code/issues/64383")
PAIRING_DUPLICATE_RESULT = Rule("pairing.duplicate_result", f"{_GITHUB}/vercel/eve/pull/1246")
PAIRING_DUPLICATE_ID = Rule(
    "pairing.duplicate_id", f"{_GITHUB}/anthropics/claude-code/issues/20901"
)
ORDER_RESULTS_FIRST = Rule(
    "order.results_first", f"{_GITHUB}/anthropics/anthropic-sdk-typescript/issues/653"
)
ORDER_FIRST = Rule("order.first", f"{_GITHUB}/anthropics/anthropic-sdk-typescript/issues/622")
ORDER_LAST = Rule("order.last", f"{_GITHUB}/agenticloops-ai/agentic-ai-engineering/issues/43")
ORDER_ALTERNATION = Rule("order.alternation", f"{_GITHUB}/langbot-app/LangBot/issues/867")

CACHE = Rule("cache.shape", f"{_DOCS}/build-with-claude/prompt-caching")
CACHE_COUNT = Rule("cache.count", f"{_GITHUB}/tghamm/Anthropic.SDK/issues/50")
CACHE_ORDER = Rule("cache.order", f"{_DOCS}/build-with-claude/prompt-caching (mixing TTLs)")

TOOLS_SHAPE = Rule("tools.shape", f"{_GITHUB}/Wei-Shaw/claude-relay-service/issues/667")
TOOLS_NAME = Rule("tools.name", f"{_DOCS}/agents-and-tools/tool-use/define-tools (name)")
TOOLS_UNIQUE = Rule("tools.unique", f"{_GITHUB}/onyx-dot-app/onyx/issues/9229")
TOOLS_INPUT = Rule("tools.input_schema", f"{_GITHUB}/marianfoo/mcp-sap-docs/pull/51")
TOOLS_PROPERTY = Rule("tools.property", f"{_GITHUB}/beautyfree/appstore-connect-mcp/issues/1")
TOOLS_SCHEMA = Rule("tools.schema", f"{_GITHUB}/anthropics/claude-code/issues/7365")
TOOLS_DEMANDED = Rule("tools.demanded", f"{_GITHUB}/aws-samples/bedrock-access-gateway/pull/239")
TOOL_CHOICE = Rule("tool_choice", f"{_API} (tool_choice)")

ANTHROPIC_RULES = (
    *COMMON_RULES,
    KEYS_UNKNOWN,
    KEYS_MISSING,
    MODEL,
    MAX_TOKENS,
    SAMPLING,
    FIELD_TYPE,
    STOP,
    OUTPUT_SCHEMA,
    THINKING,
    THINKING_BUDGET,
    THINKING_SAMPLING,
    THINKING_CHOICE,
    THINKING_BLOCK,
    THINKING_LAST,
    THINKING_FIRST,
    THINKING_OFF,
    MESSAGES,
    MESSAGE_KEYS,
    ROLE,
    CONTENT_TYPE,
    CONTENT_EMPTY,
    TEXT_BLANK,
    BLOCK_TYPE,
    BLOCK_KEYS,
    IMAGE,
    IMAGE_LIMITS,
    DOCUMENT,
    TOOL_ID,
    TOOL_NAME,
    TOOL_INPUT,
    RESULT,
    RESULT_ERROR,
    PAIRING_MISSING,
    PAIRING_ORPHAN,
    PAIRING_SERVER,
    PAIRING_DUPLICATE_RESULT,
    PAIRING_DUPLICATE_ID,
    ORDER_RESULTS_FIRST,
    ORDER_FIRST,
    ORDER_LAST,
    ORDER_ALTERNATION,
    CACHE,
    CACHE_COUNT,
    CACHE_ORDER,
    TOOLS_SHAPE,
    TOOLS_NAME,
    TOOLS_UNIQUE,
    TOOLS_INPUT,
    TOOLS_PROPERTY,
    TOOLS_SCHEMA,
    TOOLS_DEMANDED,
    TOOL_CHOICE,
)
