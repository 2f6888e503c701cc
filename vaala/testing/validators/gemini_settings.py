"""The settings of a generateContent request: sampling, thinking, output format and safety."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vaala.testing.validators import gemini_rules as rules
from vaala.testing.validators.common import (
    JsonObject,
    Report,
    as_array,
    as_object,
    child,
    show,
)
from vaala.testing.validators.gemini_fields import fields_of
from vaala.testing.validators.gemini_schema import check_schema
from vaala.testing.validators.json_schema import schema_faults
from vaala.testing.validators.limits import GEMINI_MAX_CANDIDATES, GEMINI_MAX_STOP_SEQUENCES
from vaala.testing.validators.values import MAX_INT64, Range, are_texts, is_flag, is_one_of

_MAX_INT32 = 2**31 - 1
_RANGES: Mapping[str, Range] = {
    "temperature": Range(0, 2),
    "topP": Range(0, 1),
    "topK": Range(1, MAX_INT64),
    "maxOutputTokens": Range(1, _MAX_INT32, whole=True),
    "candidateCount": Range(1, GEMINI_MAX_CANDIDATES, whole=True),
    "presencePenalty": Range(-2, 2),
    "frequencyPenalty": Range(-2, 2),
    "seed": Range(-_MAX_INT32, _MAX_INT32, whole=True),
    "logprobs": Range(0, 20, whole=True),
}
_CONFIG = frozenset(
    (
        *("stopSequences", "responseMimeType", "responseSchema", "responseJsonSchema"),
        *("responseModalities", "responseLogprobs", "thinkingConfig", "mediaResolution"),
        *("speechConfig", "imageConfig", "enableEnhancedCivicAnswers"),
        *_RANGES,
    )
)
_THINKING = frozenset(("includeThoughts", "thinkingBudget", "thinkingLevel"))
_LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH")
_MODALITIES = ("TEXT", "IMAGE", "AUDIO")
_BUDGET = Range(-1, _MAX_INT32, whole=True)
_CATEGORIES = tuple(
    f"HARM_CATEGORY_{name}"
    for name in (
        *("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT"),
        "CIVIC_INTEGRITY",
    )
)
_THRESHOLDS = (
    *("BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"),
)


def check_generation(value: object, report: Report) -> None:
    path = "$.generationConfig"
    config = fields_of(value, _CONFIG, path, report)
    if config is None:
        return
    for key, allowed in _RANGES.items():
        if key in config and not allowed.fits(config[key]):
            message = f"{show(config[key])} is not {allowed}"
            report.add(rules.SAMPLING, child(path, key), message)
    for key, fits in _FITS.items():
        if key in config and not fits(config[key]):
            report.add(rules.GENERATION, child(path, key), f"{show(config[key])} does not fit")
    if "thinkingConfig" in config:
        _check_thinking(config["thinkingConfig"], child(path, "thinkingConfig"), report)
    _check_response_schema(config, path, report)


def check_calls_beside_json(fields: JsonObject, report: Report) -> None:
    """Check that functions are switched off where the answer is JSON."""
    config = as_object(fields.get("generationConfig")) or {}
    kind = config.get("responseMimeType", config.get("response_mime_type"))
    calling = as_object(fields.get("toolConfig")) or {}
    mode = as_object(calling.get("functionCallingConfig")) or {}
    if kind == "application/json" and fields.get("tools") and mode.get("mode") != "NONE":
        message = "function calling with a response mime type of JSON is unsupported"
        report.add(rules.RESPONSE_CALLS, "$.generationConfig.responseMimeType", message)


def _check_thinking(value: object, path: str, report: Report) -> None:
    thinking = fields_of(value, _THINKING, path, report)
    if thinking is None:
        return
    if not is_flag(thinking.get("includeThoughts", False)):
        report.add(rules.THINKING, child(path, "includeThoughts"), "is neither true nor false")
    budget, level = thinking.get("thinkingBudget"), thinking.get("thinkingLevel")
    if budget is not None and not _BUDGET.fits(budget):
        report.add(rules.THINKING, child(path, "thinkingBudget"), f"is not {_BUDGET}")
    if level is not None and not (isinstance(level, str) and level.upper() in _LEVELS):
        report.add(rules.THINKING, child(path, "thinkingLevel"), f"is none of {_LEVELS}")
    if budget is not None and level is not None:
        report.add(rules.THINKING, path, "budget and level exclude each other")


def _check_response_schema(config: JsonObject, path: str, report: Report) -> None:
    keys = [key for key in ("responseSchema", "responseJsonSchema") if key in config]
    if len(keys) == 2:
        report.add(rules.RESPONSE_SCHEMA, path, "two schemas exclude each other")
    if keys and config.get("responseMimeType") not in ("application/json", "text/x.enum"):
        message = "a schema needs 'responseMimeType' of JSON"
        report.add(rules.RESPONSE_SCHEMA, child(path, keys[0]), message)
    if "responseSchema" in config:
        check_schema(config["responseSchema"], child(path, "responseSchema"), report)
    if "responseJsonSchema" in config:
        schema = as_object(config["responseJsonSchema"])
        schema_path = child(path, "responseJsonSchema")
        if schema is None:
            report.add(rules.RESPONSE_SCHEMA, schema_path, "is no object")
        else:
            for fault in schema_faults(schema):
                report.add(rules.RESPONSE_SCHEMA, child(schema_path, *fault.keys), fault.message)


def check_safety(value: object, report: Report) -> None:
    path = "$.safetySettings"
    settings = as_array(value)
    if settings is None:
        report.add(rules.SAFETY, path, "is no array")
        return
    seen: set[object] = set()
    for index, item in enumerate(settings):
        setting = as_object(item)
        if setting is None or setting.keys() != {"category", "threshold"}:
            report.add(rules.SAFETY, child(path, index), "holds 'category' and 'threshold' only")
            continue
        category, threshold = setting["category"], setting["threshold"]
        if not is_one_of(category, _CATEGORIES) or not is_one_of(threshold, _THRESHOLDS):
            report.add(rules.SAFETY, child(path, index), f"{show(setting)} is not known")
        elif category in seen:
            report.add(rules.SAFETY, child(path, index), f"a second setting for {show(category)}")
        else:
            seen.add(category)


def _are_stops(value: object) -> bool:
    stops = as_array(value)
    return stops == [] or (are_texts(stops) and len(stops or ()) <= GEMINI_MAX_STOP_SEQUENCES)


def _are_modalities(value: object) -> bool:
    names = as_array(value)
    return names is not None and all(is_one_of(name, _MODALITIES) for name in names)


_FITS: Mapping[str, Callable[[object], bool]] = {
    "stopSequences": _are_stops,
    "responseMimeType": lambda value: is_one_of(
        value, ("text/plain", "application/json", "text/x.enum")
    ),
    "responseModalities": _are_modalities,
    "responseLogprobs": is_flag,
    "mediaResolution": lambda value: isinstance(value, str),
    "speechConfig": lambda value: as_object(value) is not None,
    "imageConfig": lambda value: as_object(value) is not None,
    "enableEnhancedCivicAnswers": is_flag,
}
