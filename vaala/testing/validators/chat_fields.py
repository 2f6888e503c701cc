"""The settings of a chat request: which top-level keys there are, and what each may hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from vaala.testing.validators import chat_rules as rules
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    Rule,
    as_array,
    as_object,
    child,
    is_blank,
    show,
)
from vaala.testing.validators.json_schema import output_schema_faults
from vaala.testing.validators.limits import MAX_NAME_CHARS, MAX_STOP_SEQUENCES

_Fits: TypeAlias = Callable[[str, object], bool]


@dataclass(frozen=True, slots=True)
class _Number:
    rule: Rule
    low: float
    high: float
    whole: bool = False


_MAX_INT64 = 2**63 - 1
_NUMBERS = {
    "temperature": _Number(rules.TEMPERATURE, 0, 2),
    "top_p": _Number(rules.SAMPLING, 0, 1),
    "frequency_penalty": _Number(rules.SAMPLING, -2, 2),
    "presence_penalty": _Number(rules.SAMPLING, -2, 2),
    "top_logprobs": _Number(rules.SAMPLING, 0, 20, whole=True),
    "n": _Number(rules.SAMPLING, 1, 128, whole=True),
    "seed": _Number(rules.SAMPLING, -_MAX_INT64, _MAX_INT64, whole=True),
    "max_tokens": _Number(rules.MAX_TOKENS, 1, _MAX_INT64, whole=True),
    "max_completion_tokens": _Number(rules.MAX_TOKENS, 1, _MAX_INT64, whole=True),
}
_CHOICES = {
    "reasoning_effort": ("none", "minimal", "low", "medium", "high", "xhigh", "max"),
    "verbosity": ("low", "medium", "high"),
}
_STRINGS = ("user", "safety_identifier", "prompt_cache_key", "service_tier")
_FLAGS = ("store", "logprobs", "parallel_tool_calls")
_OBJECTS = ("metadata", "logit_bias")
_NEVER_NULL = frozenset(
    ("messages", "model", "tools", "tool_choice", "parallel_tool_calls", "response_format")
) | frozenset(_STRINGS[:3])
_KNOWN_KEYS = frozenset(
    (
        *("model", "messages", "tools", "tool_choice", "response_format", "stop"),
        *("stream", "stream_options"),
        *_NUMBERS,
        *_CHOICES,
        *_STRINGS,
        *_FLAGS,
        *_OBJECTS,
    )
)
_FORMAT_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_CHARS}}}")
_STREAM_OPTIONS = frozenset(("include_usage", "include_obfuscation"))


def check_fields(request: JsonObject, extra_keys: Collection[str], report: Report) -> None:
    """Check every top-level key but ``messages``, ``tools`` and ``tool_choice``."""
    for key in request:
        if key not in _KNOWN_KEYS and key not in extra_keys:
            report.add(rules.KEYS_UNKNOWN, child("$", key), f"unknown request argument {show(key)}")
    for key in ("model", "messages"):
        if key not in request:
            report.add(rules.KEYS_MISSING, "$", f"the request has no {show(key)}")
    # The API description marks most settings as nullable: null means the default.
    fields = {k: v for k, v in request.items() if v is not None or k in _NEVER_NULL}
    _check_model(fields, report)
    _check_stream(fields, report)
    _check_numbers(fields, report)
    _check_types(fields, report)
    if "response_format" in fields:
        _check_response_format(fields["response_format"], report)
        if fields["response_format"] == {"type": "json_object"}:
            _check_word(fields.get("messages"), report)


def _check_model(fields: JsonObject, report: Report) -> None:
    if "model" not in fields:
        return
    model = fields["model"]
    if not isinstance(model, str) or is_blank(model) or model != model.strip():
        report.add(rules.MODEL, "$.model", f"{show(model)} is no model id")


def _check_stream(fields: JsonObject, report: Report) -> None:
    stream = fields.get("stream", False)
    if not isinstance(stream, bool):
        report.add(rules.STREAM, "$.stream", f"{show(stream)} is neither true nor false")
    if "stream_options" not in fields:
        return
    path = "$.stream_options"
    if stream is False:
        report.add(rules.STREAM_OPTIONS_ALONE, path, "only allowed when 'stream' is true")
    options = as_object(fields["stream_options"])
    if options is None:
        report.add(rules.STREAM_OPTIONS, path, "is no object")
        return
    for key, value in options.items():
        if key not in _STREAM_OPTIONS:
            report.add(rules.STREAM_OPTIONS, child(path, key), f"unknown option {show(key)}")
        elif not isinstance(value, bool):
            message = f"{show(value)} is neither true nor false"
            report.add(rules.STREAM_OPTIONS, child(path, key), message)


def _check_numbers(fields: JsonObject, report: Report) -> None:
    for key, number in _NUMBERS.items():
        if key not in fields:
            continue
        value = fields[key]
        kind = "an integer" if number.whole else "a number"
        if (
            isinstance(value, bool)
            or not isinstance(value, int if number.whole else int | float)
            or not number.low <= value <= number.high
        ):
            message = f"{show(value)} is not {kind} from {number.low} to {number.high}"
            report.add(number.rule, child("$", key), message)
    if "max_tokens" in fields and "max_completion_tokens" in fields:
        message = "'max_tokens' and 'max_completion_tokens' exclude each other"
        report.add(rules.MAX_TOKENS_CONFLICT, "$.max_tokens", message)


def _check_types(fields: JsonObject, report: Report) -> None:
    def demand(keys: Collection[str], what: str, fits: _Fits) -> None:
        for key in keys:
            if key in fields and not fits(key, fields[key]):
                report.add(rules.FIELD_TYPE, child("$", key), f"{show(fields[key])} is not {what}")

    demand(_STRINGS, "a non-empty string", lambda _, value: _is_text(value))
    demand(_FLAGS, "true or false", lambda _, value: isinstance(value, bool))
    demand(_OBJECTS, "an object", lambda _, value: as_object(value) is not None)
    demand(_CHOICES, "one of its values", lambda key, value: value in _CHOICES[key])
    demand(("stop",), "1 to 4 strings", lambda _, value: _is_stop(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not is_blank(value)


def _is_stop(value: object) -> bool:
    if isinstance(value, str):
        return value != ""
    sequences = as_array(value)
    return (
        sequences is not None
        and 1 <= len(sequences) <= MAX_STOP_SEQUENCES
        and all(isinstance(sequence, str) and sequence != "" for sequence in sequences)
    )


def _check_response_format(value: object, report: Report) -> None:
    path = "$.response_format"
    match as_object(value):
        case {"type": "text" | "json_object", **rest} if not rest:
            pass
        case {"type": "json_schema", "json_schema": dict() as schema, **rest} if not rest:
            _check_format_schema(schema, child(path, "json_schema"), report)
        case _:
            report.add(rules.RESPONSE_FORMAT, path, "is no known response format")


def _check_format_schema(format_: JsonObject, path: str, report: Report) -> None:
    name, schema = format_.get("name"), as_object(format_.get("schema"))
    if not isinstance(name, str) or _FORMAT_NAME.fullmatch(name) is None or schema is None:
        message = "needs a legal 'name' and an object as 'schema'"
        report.add(rules.RESPONSE_FORMAT, path, message)
    elif not isinstance(format_.get("strict"), bool | None):
        report.add(rules.RESPONSE_FORMAT, child(path, "strict"), "is neither true nor false")
    else:
        for fault in output_schema_faults(schema, strict=format_.get("strict") is True):
            report.add(rules.FORMAT_SCHEMA, child(path, "schema", *fault.keys), fault.message)


def _check_word(messages: object, report: Report) -> None:
    """A request for some JSON object whose messages do not say so is refused."""
    if "json" not in str(messages).lower():
        message = "'messages' must contain the word 'json' in some form"
        report.add(rules.FORMAT_WORD, "$.response_format", message)
