"""The settings of a Messages request: which top-level keys there are, and what each may hold."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from vaala.testing.validators import anthropic_rules as rules
from vaala.testing.validators.common import JsonObject, Report, Rule, as_object, child, show
from vaala.testing.validators.json_schema import open_objects, schema_faults
from vaala.testing.validators.limits import CLAUDE_MIN_THINKING_TOKENS
from vaala.testing.validators.values import (
    MAX_INT64,
    Range,
    are_texts,
    is_flag,
    is_one_of,
    is_text,
    shape,
)

_RANGES: Mapping[str, tuple[Rule, Range]] = {
    "temperature": (rules.SAMPLING, Range(0, 1)),
    "top_p": (rules.SAMPLING, Range(0, 1)),
    "top_k": (rules.SAMPLING, Range(0, MAX_INT64, whole=True)),
    "max_tokens": (rules.MAX_TOKENS, Range(1, MAX_INT64, whole=True)),
}
_REQUIRED = ("model", "max_tokens", "messages")
_KNOWN_KEYS = frozenset(
    (
        *("model", "messages", "system", "tools", "tool_choice", "thinking", "stop_sequences"),
        *("stream", "metadata", "service_tier", "output_config", "container", "inference_geo"),
        *("cache_control", "context_management", "mcp_servers"),
        *_RANGES,
    )
)
_NULLABLE = frozenset(("cache_control", "container", "inference_geo"))
_EFFORTS = ("low", "medium", "high", "xhigh", "max")
_TIERS = ("auto", "standard_only")
_FORCING = ("any", "tool")
_THINKING = {
    "enabled": shape("type budget_tokens", "display"),
    "adaptive": shape("type", "display"),
    "disabled": shape("type"),
}
_BUDGET = Range(CLAUDE_MIN_THINKING_TOKENS, MAX_INT64, whole=True)
_THINKING_TOP_P = Range(0.95, 1)


def check_fields(request: JsonObject, extra_keys: Collection[str], report: Report) -> None:
    """Check every top-level key but ``messages``, ``system``, ``tools`` and ``tool_choice``."""
    for key in request:
        if key not in _KNOWN_KEYS and key not in extra_keys:
            report.add(rules.KEYS_UNKNOWN, child("$", key), "Extra inputs are not permitted")
    for key in _REQUIRED:
        if key not in request:
            report.add(rules.KEYS_MISSING, "$", f"the request has no {show(key)}")
    fields = {k: v for k, v in request.items() if v is not None or k not in _NULLABLE}
    if "model" in fields and not _is_model(fields["model"]):
        report.add(rules.MODEL, "$.model", f"{show(fields['model'])} is no model id")
    for key, (rule, allowed) in _RANGES.items():
        if key in fields and not allowed.fits(fields[key]):
            report.add(rule, child("$", key), f"{show(fields[key])} is not {allowed}")
    if "stop_sequences" in fields and not _are_stops(fields["stop_sequences"]):
        message = "each stop sequence must contain non-whitespace"
        report.add(rules.STOP, "$.stop_sequences", message)
    for key, fits in _FITS.items():
        if key in fields and not fits(fields[key]):
            report.add(rules.FIELD_TYPE, child("$", key), f"{show(fields[key])} does not fit")
    if "thinking" in fields:
        _check_thinking(fields, report)
    _check_output_schema(fields.get("output_config"), report)


def thinking_type(request: JsonObject, unasked: bool) -> str:
    """Return "enabled", "adaptive" or "disabled"; ``unasked``: the model thinks by itself."""
    kind = (as_object(request.get("thinking")) or {}).get("type")
    if isinstance(kind, str) and kind in _THINKING:
        return kind
    return "adaptive" if unasked else "disabled"


def _check_output_schema(config: object, report: Report) -> None:
    format_ = as_object((as_object(config) or {}).get("format")) or {}
    schema = as_object(format_.get("schema"))
    if schema is None:
        return
    for fault in (
        *schema_faults(schema, draft_2020=True),
        *open_objects(schema, all_required=False),
    ):
        path = child("$", "output_config", "format", "schema", *fault.keys)
        report.add(rules.OUTPUT_SCHEMA, path, fault.message)


def _check_thinking(fields: JsonObject, report: Report) -> None:
    thinking = as_object(fields["thinking"])
    kind = None if thinking is None else thinking.get("type")
    if thinking is None or not isinstance(kind, str) or kind not in _THINKING:
        report.add(rules.THINKING, "$.thinking", f"{show(kind)} is none of {', '.join(_THINKING)}")
        return
    if not _THINKING[kind].check(thinking, rules.THINKING, "$.thinking", report):
        return
    if thinking.get("display") not in (None, "summarized", "omitted"):
        report.add(rules.THINKING, "$.thinking.display", "is neither summarized nor omitted")
    if kind == "enabled":
        _check_budget(thinking["budget_tokens"], fields.get("max_tokens"), report)
        _check_choice(fields.get("tool_choice"), report)
    if kind != "disabled":
        _check_beside_thinking(fields, report)


def _check_budget(budget: object, max_tokens: object, report: Report) -> None:
    path = "$.thinking.budget_tokens"
    if not _BUDGET.fits(budget):
        report.add(rules.THINKING_BUDGET, path, f"{show(budget)} is not {_BUDGET}")
    elif isinstance(budget, int) and isinstance(max_tokens, int) and budget >= max_tokens:
        report.add(rules.THINKING_BUDGET, path, f"{budget} is not below the {max_tokens} in all")


def _check_beside_thinking(fields: JsonObject, report: Report) -> None:
    if fields.get("temperature", 1) != 1:
        message = "may only be set to 1 when thinking is enabled"
        report.add(rules.THINKING_SAMPLING, "$.temperature", message)
    if "top_k" in fields:
        report.add(rules.THINKING_SAMPLING, "$.top_k", "must be unset when thinking is enabled")
    if "top_p" in fields and not _THINKING_TOP_P.fits(fields["top_p"]):
        message = f"must be {_THINKING_TOP_P} when thinking is enabled"
        report.add(rules.THINKING_SAMPLING, "$.top_p", message)


def _check_choice(value: object, report: Report) -> None:
    choice = as_object(value) or {}
    if is_one_of(choice.get("type"), _FORCING):
        message = "thinking may not be enabled when tool_choice forces tool use"
        report.add(rules.THINKING_CHOICE, "$.tool_choice", message)


def _is_model(value: object) -> bool:
    return isinstance(value, str) and is_text(value) and value == value.strip()


def _are_stops(value: object) -> bool:
    return value == [] or are_texts(value)


def _is_metadata(value: object) -> bool:
    match as_object(value):
        case {"user_id": str() | None, **rest} if not rest:
            return True
        case {}:
            return value == {}
        case _:
            return False


def _is_output_config(value: object) -> bool:
    config = as_object(value)
    if config is None or not config.keys() <= {"effort", "format"}:
        return False
    effort, format_ = config.get("effort"), config.get("format")
    return (effort is None or is_one_of(effort, _EFFORTS)) and (
        format_ is None or _is_format(format_)
    )


def _is_format(value: object) -> bool:
    match as_object(value):
        case {"type": "json_schema", "schema": dict(), **rest}:
            return not rest
        case _:
            return False


def _is_object(value: object) -> bool:
    return as_object(value) is not None


_FITS: Mapping[str, Callable[[object], bool]] = {
    "stream": is_flag,
    "metadata": _is_metadata,
    "service_tier": lambda value: is_one_of(value, _TIERS),
    "output_config": _is_output_config,
    "container": lambda value: is_text(value) or _is_object(value),
    "inference_geo": is_text,
    "context_management": _is_object,
    "mcp_servers": lambda value: isinstance(value, list),
}
