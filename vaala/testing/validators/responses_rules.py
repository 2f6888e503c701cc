"""Every rule of the Responses API without state on the server, with its source.

"OpenAI" below is the published API description; an issue quotes the error text of the API, of
Azure, or of a server that answers the same requests. Where a server turns the request into chat
messages, as vLLM and LM Studio do, the rule of chat holds and its source is named.
"""

from __future__ import annotations

from vaala.testing.validators.common import COMMON_RULES, Rule

_OPENAI = "https://github.com/openai/openai-openapi"
_GITHUB = "https://github.com"

KEYS_UNKNOWN = Rule("keys.unknown", f"{_OPENAI} (CreateResponse)")
KEYS_MISSING = Rule("keys.missing", f"{_OPENAI} (CreateResponse)")
MODEL = Rule("model", f"{_OPENAI} (CreateResponse.model)")
STORE = Rule("store", f"{_GITHUB}/anomalyco/opencode/issues/8987")
STATE = Rule("state.server", f"{_GITHUB}/smixs/iva-agent/pull/19")
OUTPUT_TOKENS = Rule("max_output_tokens.range", f"{_GITHUB}/vectorize-io/hindsight/issues/58")
SAMPLING = Rule("sampling.range", f"{_OPENAI} (CreateResponse)")
FIELD_TYPE = Rule("field.type", f"{_OPENAI} (CreateResponse)")
REASONING = Rule("reasoning.settings", f"{_OPENAI} (Reasoning)")
TEXT = Rule("text.format", f"{_OPENAI} (ResponseTextParam)")
TEXT_SCHEMA = Rule("text.schema", f"{_GITHUB}/simonw/llm-openai-plugin/issues/3")
INCLUDE = Rule("include", f"{_OPENAI} (IncludeEnum)")

INPUT = Rule("input.shape", f"{_OPENAI} (CreateResponse.input)")
ITEM_TYPE = Rule("item.type", f"{_OPENAI} (InputItem)")
ITEM_KEYS = Rule("item.keys", f"{_GITHUB}/1jehuang/jcode/issues/1028")
ITEM_ID = Rule("item.id", f"{_GITHUB}/jlcodes99/cockpit-tools/issues/2090")
ITEM_DUPLICATE = Rule("item.duplicate", f"{_GITHUB}/OpenRouterTeam/ai-sdk-provider/issues/254")
ITEM_STATUS = Rule("item.status", f"{_OPENAI} (FunctionToolCall.status)")
ROLE = Rule("message.role", f"{_GITHUB}/Chevey339/kelivo/pull/281")
CONTENT_TYPE = Rule("content.type", f"{_GITHUB}/QuantumNous/new-api/issues/4776")
CONTENT_EMPTY = Rule("content.empty", f"{_GITHUB}/BiFangKNT/mtga/pull/68")
PART = Rule("content.part", f"{_GITHUB}/NousResearch/hermes-agent/pull/15690")
IMAGE = Rule("content.image", f"{_OPENAI} (InputImageContent)")
FILE = Rule("content.file", f"{_OPENAI} (InputFileContent)")

CALL_ID = Rule("call.id", f"{_GITHUB}/decolua/9router/issues/393")
CALL_NAME = Rule("call.name", f"{_GITHUB}/mcp-use/mcp-use/issues/90")
CALL_ARGUMENTS = Rule("call.arguments", f"{_GITHUB}/sgl-project/sglang/pull/28035")
OUTPUT = Rule("output.shape", f"{_OPENAI} (FunctionCallOutputItemParam)")
REASONING_ITEM = Rule("reasoning.item", f"{_OPENAI} (ReasoningItem)")
REASONING_STATE = Rule("reasoning.encrypted", f"{_GITHUB}/can1357/oh-my-pi/issues/41")
REASONING_ORPHAN = Rule(
    "reasoning.following",
    f"{_GITHUB}/pydantic/pydantic-ai (tests/models/cassettes/test_openai_responses/"
    "test_openai_responses_thinking_with_modified_history.yaml)",
)

PAIRING_MISSING = Rule("pairing.missing", f"{_GITHUB}/lace-ai/gai/pull/49")
PAIRING_ORPHAN = Rule("pairing.orphan", f"{_GITHUB}/james-6-23/codex2api/issues/414")
PAIRING_DUPLICATE_RESULT = Rule("pairing.duplicate_result", f"{_GITHUB}/agno-agi/agno/issues/5116")
PAIRING_DUPLICATE_ID = Rule(
    "pairing.duplicate_id", f"{_GITHUB}/NousResearch/hermes-agent/pull/11722"
)

TOOLS_COUNT = Rule("tools.count", f"{_GITHUB}/zed-industries/zed/issues/32946")
TOOLS_SHAPE = Rule("tools.shape", f"{_OPENAI} (FunctionTool)")
TOOLS_NAME = Rule("tools.name", f"{_OPENAI} (FunctionTool.name)")
TOOLS_UNIQUE = Rule("tools.unique", f"{_GITHUB}/liliMozi/openhanako/issues/789")
TOOLS_PARAMETERS = Rule("tools.parameters", f"{_GITHUB}/farion1231/cc-switch/issues/5490")
TOOLS_SCHEMA = Rule("tools.schema", f"{_GITHUB}/sigoden/aichat/pull/1049")
TOOLS_STRICT = Rule("tools.strict", f"{_GITHUB}/lastmile-ai/openai-agents-mcp/issues/2")
TOOL_CHOICE = Rule("tool_choice", f"{_OPENAI} (ToolChoiceParam)")

RESPONSES_RULES = (
    *COMMON_RULES,
    KEYS_UNKNOWN,
    KEYS_MISSING,
    MODEL,
    STORE,
    STATE,
    OUTPUT_TOKENS,
    SAMPLING,
    FIELD_TYPE,
    REASONING,
    TEXT,
    TEXT_SCHEMA,
    INCLUDE,
    INPUT,
    ITEM_TYPE,
    ITEM_KEYS,
    ITEM_ID,
    ITEM_DUPLICATE,
    ITEM_STATUS,
    ROLE,
    CONTENT_TYPE,
    CONTENT_EMPTY,
    PART,
    IMAGE,
    FILE,
    CALL_ID,
    CALL_NAME,
    CALL_ARGUMENTS,
    OUTPUT,
    REASONING_ITEM,
    REASONING_STATE,
    REASONING_ORPHAN,
    PAIRING_MISSING,
    PAIRING_ORPHAN,
    PAIRING_DUPLICATE_RESULT,
    PAIRING_DUPLICATE_ID,
    TOOLS_COUNT,
    TOOLS_SHAPE,
    TOOLS_NAME,
    TOOLS_UNIQUE,
    TOOLS_PARAMETERS,
    TOOLS_SCHEMA,
    TOOLS_STRICT,
    TOOL_CHOICE,
)
