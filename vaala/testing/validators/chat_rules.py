"""Every rule of a strict chat-completions server, with its source.

"OpenAI" below is the published API description; the rest are error texts of servers that speak the
same format. Where servers differ, the stricter one is the rule.
"""

from __future__ import annotations

from vaala.testing.validators.common import COMMON_RULES, Rule

_OPENAI = "https://github.com/openai/openai-openapi"
_GITHUB = "https://github.com"

KEYS_UNKNOWN = Rule("keys.unknown", f"{_GITHUB}/coroot/coroot/issues/698")
KEYS_MISSING = Rule("keys.missing", f"{_OPENAI} (CreateChatCompletionRequest)")
MODEL = Rule("model", f"{_OPENAI} (CreateChatCompletionRequest.model)")
STREAM = Rule("stream.shape", f"{_OPENAI} (CreateChatCompletionRequest.stream)")
STREAM_OPTIONS = Rule("stream_options.shape", f"{_OPENAI} (ChatCompletionStreamOptions)")
STREAM_OPTIONS_ALONE = Rule(
    "stream_options.without_stream", f"{_GITHUB}/BerriAI/litellm/issues/5803"
)
MAX_TOKENS = Rule("max_tokens.range", f"{_GITHUB}/deepseek-ai/DeepSeek-V3/issues/69")
MAX_TOKENS_CONFLICT = Rule("max_tokens.conflict", f"{_GITHUB}/langchain-ai/langgraph/issues/5943")
TEMPERATURE = Rule("temperature.range", f"{_OPENAI} (ModelResponseProperties.temperature)")
SAMPLING = Rule("sampling.range", f"{_OPENAI} (CreateChatCompletionRequest)")
FIELD_TYPE = Rule("field.type", f"{_OPENAI} (CreateChatCompletionRequest)")
RESPONSE_FORMAT = Rule(
    "response_format", f"{_OPENAI} (CreateChatCompletionRequest.response_format)"
)
FORMAT_SCHEMA = Rule("response_format.schema", f"{_GITHUB}/moeru-ai/xsai/issues/202")
FORMAT_WORD = Rule("response_format.word", f"{_OPENAI} (ResponseFormatJsonObject)")

MESSAGES = Rule("messages.shape", f"{_GITHUB}/CopilotKit/CopilotKit/issues/529")
ROLE = Rule("message.role", f"{_GITHUB}/earendil-works/pi/issues/1048")
MESSAGE_KEYS = Rule("message.keys", f"{_GITHUB}/tashfeenahmed/freellmapi/issues/1070")
MESSAGE_NAME = Rule("message.name", f"{_GITHUB}/pollinations/pollinations/pull/10653")
CONTENT_REQUIRED = Rule("content.required", f"{_GITHUB}/HKUDS/nanobot/pull/3869")
CONTENT_TYPE = Rule("content.type", f"{_OPENAI} (ChatCompletionRequestMessage)")
CONTENT_EMPTY = Rule("content.empty", f"{_GITHUB}/HKUDS/nanobot/pull/949")
CONTENT_PART = Rule("content.part", f"{_GITHUB}/QwenLM/qwen-code/issues/3616")
CONTENT_IMAGE = Rule("content.image", f"{_OPENAI} (ChatCompletionRequestMessageContentPartImage)")
ASSISTANT_EMPTY = Rule("assistant.empty", f"{_GITHUB}/OpenHands/OpenHands/issues/8685")

CALL_SHAPE = Rule("tool_call.shape", f"{_GITHUB}/mistralai/mistral-common/pull/165")
CALL_ID = Rule("tool_call.id", f"{_GITHUB}/vercel/ai/issues/5171")
CALL_ID_MISTRAL = Rule("tool_call.id_mistral", f"{_GITHUB}/langchain-ai/langchain/pull/24668")
CALL_NAME = Rule("tool_call.name", f"{_GITHUB}/mcp-use/mcp-use/issues/90")
CALL_ARGUMENTS = Rule("tool_call.arguments", f"{_GITHUB}/sgl-project/sglang/pull/28035")

PAIRING_MISSING = Rule("pairing.missing", f"{_GITHUB}/agno-agi/agno/issues/3105")
PAIRING_ORPHAN = Rule("pairing.orphan", f"{_GITHUB}/FoundationAgents/OpenManus/issues/744")
PAIRING_DUPLICATE_RESULT = Rule("pairing.duplicate_result", f"{_GITHUB}/agno-agi/agno/issues/5116")
PAIRING_DUPLICATE_ID = Rule(
    "pairing.duplicate_id", f"{_GITHUB}/NousResearch/hermes-agent/pull/11722"
)

ORDER_SYSTEM = Rule("order.system", f"{_GITHUB}/vllm-project/vllm/issues/41114")
ORDER_LAST = Rule("order.last", f"{_GITHUB}/QuantumNous/new-api/issues/2858")
ORDER_ASSISTANT_RUN = Rule("order.assistant_run", f"{_GITHUB}/trymirai/uzu/issues/821")
ORDER_NO_USER = Rule("order.no_user", f"{_GITHUB}/vllm-project/vllm/issues/36432")
ORDER_ALTERNATION = Rule("order.alternation", f"{_GITHUB}/mistralai/mistral-vibe/issues/1006")

TOOLS_COUNT = Rule("tools.count", f"{_GITHUB}/zed-industries/zed/issues/32946")
TOOLS_SHAPE = Rule("tools.shape", f"{_OPENAI} (ChatCompletionTool)")
TOOLS_NAME = Rule("tools.name", f"{_OPENAI} (FunctionObject.name)")
TOOLS_UNIQUE = Rule("tools.unique", f"{_GITHUB}/liliMozi/openhanako/issues/789")
TOOLS_PARAMETERS = Rule("tools.parameters", f"{_GITHUB}/farion1231/cc-switch/issues/5490")
TOOLS_SCHEMA = Rule("tools.schema", f"{_GITHUB}/sigoden/aichat/pull/1049")
TOOLS_ABSENT = Rule("tools.absent", f"{_GITHUB}/writer/writer-framework/pull/1013")
TOOL_CHOICE = Rule("tool_choice", f"{_OPENAI} (ChatCompletionToolChoiceOption)")

CHAT_RULES = (
    *COMMON_RULES,
    KEYS_UNKNOWN,
    KEYS_MISSING,
    MODEL,
    STREAM,
    STREAM_OPTIONS,
    STREAM_OPTIONS_ALONE,
    MAX_TOKENS,
    MAX_TOKENS_CONFLICT,
    TEMPERATURE,
    SAMPLING,
    FIELD_TYPE,
    RESPONSE_FORMAT,
    FORMAT_SCHEMA,
    FORMAT_WORD,
    MESSAGES,
    ROLE,
    MESSAGE_KEYS,
    MESSAGE_NAME,
    CONTENT_REQUIRED,
    CONTENT_TYPE,
    CONTENT_EMPTY,
    CONTENT_PART,
    CONTENT_IMAGE,
    ASSISTANT_EMPTY,
    CALL_SHAPE,
    CALL_ID,
    CALL_ID_MISTRAL,
    CALL_NAME,
    CALL_ARGUMENTS,
    PAIRING_MISSING,
    PAIRING_ORPHAN,
    PAIRING_DUPLICATE_RESULT,
    PAIRING_DUPLICATE_ID,
    ORDER_SYSTEM,
    ORDER_LAST,
    ORDER_ASSISTANT_RUN,
    ORDER_NO_USER,
    ORDER_ALTERNATION,
    TOOLS_COUNT,
    TOOLS_SHAPE,
    TOOLS_NAME,
    TOOLS_UNIQUE,
    TOOLS_PARAMETERS,
    TOOLS_SCHEMA,
    TOOLS_ABSENT,
    TOOL_CHOICE,
)
