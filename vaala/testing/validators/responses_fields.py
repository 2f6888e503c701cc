"""The settings of a Responses request: which top-level keys there are, and what each may hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping

from vaala.testing.validators import responses_rules as rules
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    Rule,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.json_schema import output_schema_faults
from vaala.testing.validators.limits import (
    MAX_NAME_CHARS,
    RESPONSES_MAX_METADATA,
    RESPONSES_MIN_OUTPUT_TOKENS,
)
from vaala.testing.validators.values import (
    MAX_INT64,
    Range,
    is_flag,
    is_one_of,
    is_text,
    shape,
)

_RANGES: Mapping[str, tuple[Rule, Range]] = {
    "temperature": (rules.SAMPLING, Range(0, 2)),
    "top_p": (rules.SAMPLING, Range(0, 1)),
    "top_logprobs": (rules.SAMPLING, Range(0, 20, whole=True)),
    "max_tool_calls": (rules.SAMPLING, Range(1, MAX_INT64, whole=True)),
    "max_output_tokens": (
        rules.OUTPUT_TOKENS,
        Range(RESPONSES_MIN_OUTPUT_TOKENS, MAX_INT64, whole=True),
    ),
}
_STATE = ("previous_response_id", "conversation", "prompt", "background")
_TEXTS = (
    *("instructions", "user", "safety_identifier", "prompt_cache_key"),
    *("service_tier", "prompt_cache_retention"),
)
_FLAGS = ("stream", "store", "parallel_tool_calls")
_KNOWN_KEYS = frozenset(
    (
        *("model", "input", "tools", "tool_choice", "reasoning", "text", "include", "metadata"),
        *("stream_options", "truncation", "context_management"),
        *_RANGES,
        *_STATE,
        *_TEXTS,
        *_FLAGS,
    )
)
_NEVER_NULL = frozenset(("model", "input", "tools", "tool_choice", "text"))
_INCLUDES = frozenset(
    (
        "file_search_call.results",
        "web_search_call.results",
        "web_search_call.action.sources",
        "message.input_image.image_url",
        "computer_call_output.output.image_url",
        "code_interpreter_call.outputs",
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
    )
)
_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_SUMMARIES = ("auto", "concise", "detailed")
_VERBOSITIES = ("low", "medium", "high")
_FORMAT_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_SCHEMA_FORMAT = shape("type name schema", "description strict")


def check_fields(
    request: JsonObject, stateless: bool, extra_keys: Collection[str], report: Report
) -> None:
    """Check every top-level key but ``input``, ``tools`` and ``tool_choice``."""
    _check_keys(request, extra_keys, report)
    # The API description marks most settings as nullable: null means the default.
    fields = {k: v for k, v in request.items() if v is not None or k in _NEVER_NULL}
    if stateless:
        _check_state(fields, report)
    if "model" in fields and not _is_model(fields["model"]):
        report.add(rules.MODEL, "$.model", f"{show(fields['model'])} is no model id")
    for key, (rule, allowed) in _RANGES.items():
        if key in fields and not allowed.fits(fields[key]):
            report.add(rule, child("$", key), f"{show(fields[key])} is not {allowed}")
    for key, fits in _FITS.items():
        if key in fields and not fits(fields[key]):
            report.add(rules.FIELD_TYPE, child("$", key), f"{show(fields[key])} does not fit")
    if "include" in fields and not _is_include(fields["include"]):
        report.add(rules.INCLUDE, "$.include", f"{show(fields['include'])} holds an unknown name")
    if "reasoning" in fields and not _is_reasoning(fields["reasoning"]):
        message = f"{show(fields['reasoning'])} is no effort or summary"
        report.add(rules.REASONING, "$.reasoning", message)
    if "text" in fields:
        _check_text(fields["text"], report)


def _check_keys(request: JsonObject, extra_keys: Collection[str], report: Report) -> None:
    for key in request:
        if key not in _KNOWN_KEYS and key not in extra_keys:
            report.add(rules.KEYS_UNKNOWN, child("$", key), f"unknown parameter {show(key)}")
    for key in ("model", "input"):
        if key not in request:
            report.add(rules.KEYS_MISSING, "$", f"the request has no {show(key)}")


def _check_state(fields: JsonObject, report: Report) -> None:
    if fields.get("store") is not False:
        report.add(rules.STORE, "$.store", "is not false: the server would keep the answer")
    for key in _STATE:
        if key in fields and fields[key] is not False:
            report.add(rules.STATE, child("$", key), "names what the server does not keep")


def _check_text(value: object, report: Report) -> None:
    text = as_object(value)
    if text is None or not text.keys() <= {"format", "verbosity"}:
        report.add(rules.TEXT, "$.text", "holds 'format' and 'verbosity', no more")
        return
    if text.get("verbosity") is not None and not is_one_of(text["verbosity"], _VERBOSITIES):
        report.add(rules.TEXT, "$.text.verbosity", f"is none of {', '.join(_VERBOSITIES)}")
    if "format" not in text:
        return
    path = "$.text.format"
    format_ = as_object(text["format"]) or {}
    if format_.get("type") == "json_schema":
        if _SCHEMA_FORMAT.check(format_, rules.TEXT, path, report):
            _check_schema_format(format_, path, report)
    elif format_ not in ({"type": "text"}, {"type": "json_object"}):
        report.add(rules.TEXT, path, "is no known format")


def _check_schema_format(format_: JsonObject, path: str, report: Report) -> None:
    name = format_["name"]
    if not isinstance(name, str) or _FORMAT_NAME.fullmatch(name) is None:
        report.add(rules.TEXT, child(path, "name"), f"{show(name)} is no legal name")
    schema = as_object(format_["schema"])
    if schema is None:
        report.add(rules.TEXT, child(path, "schema"), "is no object")
    elif isinstance(format_.get("strict"), bool | None):
        for fault in output_schema_faults(schema, strict=format_.get("strict") is True):
            report.add(rules.TEXT_SCHEMA, child(path, "schema", *fault.keys), fault.message)
    if not isinstance(format_.get("strict"), bool | None):
        report.add(rules.TEXT, child(path, "strict"), "is neither true nor false")


def _is_model(value: object) -> bool:
    return isinstance(value, str) and is_text(value) and value == value.strip()


def _is_include(value: object) -> bool:
    names = as_array(value)
    return names is not None and all(is_one_of(name, _INCLUDES) for name in names)


def _is_reasoning(value: object) -> bool:
    settings = as_object(value)
    if settings is None or not settings.keys() <= {"effort", "summary"}:
        return False
    effort, summary = settings.get("effort"), settings.get("summary")
    return (effort is None or is_one_of(effort, _EFFORTS)) and (
        summary is None or is_one_of(summary, _SUMMARIES)
    )


def _is_metadata(value: object) -> bool:
    pairs = as_object(value)
    return (
        pairs is not None
        and len(pairs) <= RESPONSES_MAX_METADATA
        and all(isinstance(text, str) for text in pairs.values())
    )


def _is_stream_options(value: object) -> bool:
    options = as_object(value)
    return (
        options is not None
        and options.keys() <= {"include_obfuscation"}
        and all(map(is_flag, options.values()))
    )


_FITS: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(_TEXTS, is_text),
    **dict.fromkeys(_FLAGS, is_flag),
    "metadata": _is_metadata,
    "stream_options": _is_stream_options,
    "truncation": lambda value: is_one_of(value, ("auto", "disabled")),
    "context_management": lambda value: isinstance(value, list),
}
