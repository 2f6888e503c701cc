"""What request validators share: rules, violations, strict JSON, and text every server can read."""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from vaala.testing.validators.limits import MAX_JSON_DEPTH

JsonObject: TypeAlias = dict[str, object]
JsonArray: TypeAlias = list[object]

_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN_CHARS = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Rule:
    """One thing a strict server demands. ``source`` is the page or report that says so."""

    id: str
    source: str


@dataclass(frozen=True, slots=True)
class Violation:
    """A place in a request that a strict server refuses. ``path`` is a JSONPath from the body."""

    rule: str
    path: str
    message: str
    source: str


class Report:
    """Collects violations in the order in which they are found."""

    def __init__(self) -> None:
        self._violations: list[Violation] = []

    def add(self, rule: Rule, path: str, message: str) -> None:
        self._violations.append(Violation(rule.id, path, message, rule.source))

    @property
    def violations(self) -> list[Violation]:
        return list(self._violations)


_RFC_8259 = "https://www.rfc-editor.org/rfc/rfc8259"
BODY_UTF8 = Rule("body.utf8", f"{_RFC_8259}#section-8.1")
BODY_JSON = Rule("body.json", _RFC_8259)
BODY_SHAPE = Rule(
    "body.shape", "https://github.com/openai/openai-openapi (CreateChatCompletionRequest)"
)
BODY_SIZE = Rule("body.size", "https://console.groq.com/docs/vision (request size limit)")
BODY_DEPTH = Rule(
    "body.depth", "https://docs.rs/serde_json/latest/serde_json/struct.Deserializer.html"
)
TEXT_SURROGATE = Rule("text.surrogate", "https://github.com/CherryHQ/cherry-studio/pull/20614")
TEXT_NUL = Rule("text.nul", "https://github.com/ggml-org/llama.cpp/issues/25543")
COMMON_RULES = (
    BODY_UTF8,
    BODY_JSON,
    BODY_SHAPE,
    BODY_SIZE,
    BODY_DEPTH,
    TEXT_SURROGATE,
    TEXT_NUL,
)


class NotStrictJson(ValueError):
    """The text is no JSON by RFC 8259, or repeats a name within an object."""


class NestedTooDeep(NotStrictJson):
    """The text nests deeper than a parser can follow."""


def show(value: object) -> str:
    """A value as a message shows it: cut short, however large it is."""
    shortener = reprlib.Repr()
    shortener.maxstring = _SHOWN_CHARS
    return shortener.repr(value)


def child(path: str, *keys: str | int) -> str:
    """The JSONPath of what lies under ``path`` by these names and indices."""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        elif _PLAIN_KEY.fullmatch(key):
            path += f".{key}"
        else:
            path += f"[{json.dumps(key)}]"
    return path


def as_object(value: object) -> JsonObject | None:
    return cast("JsonObject", value) if isinstance(value, dict) else None


def as_array(value: object) -> JsonArray | None:
    return cast("JsonArray", value) if isinstance(value, list) else None


def is_blank(text: str) -> bool:
    return not text.strip()


def strict_json(text: str) -> object:
    """Parse ``text`` as the strictest servers do.

    Raises NotStrictJson also for NaN, infinities and repeated names, and NestedTooDeep.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_names)
    except RecursionError:
        raise NestedTooDeep("nests deeper than the parser can follow") from None
    except NotStrictJson:
        raise
    except ValueError as error:
        raise NotStrictJson(str(error)) from None


def _refuse_constant(name: str) -> object:
    raise NotStrictJson(f"{name} is no JSON number")


def _unique_names(pairs: list[tuple[str, object]]) -> JsonObject:
    names: JsonObject = {}
    for name, value in pairs:
        if name in names:
            raise NotStrictJson(f"the name {show(name)} stands twice in one object")
        names[name] = value
    return names


def read_body(
    body: Mapping[str, Any] | bytes, max_body_bytes: int, report: Report
) -> JsonObject | None:
    """The request as plain JSON values; None when it cannot be judged any further.

    A body over the bound is not parsed.
    """
    text, size_bytes = _body_text(body, report)
    if size_bytes > max_body_bytes:
        report.add(BODY_SIZE, "$", f"{size_bytes} bytes are more than {max_body_bytes}")
        return None
    if text is None:
        return None
    try:
        value = strict_json(text)
    except NestedTooDeep as error:
        report.add(BODY_DEPTH, "$", str(error))
        return None
    except NotStrictJson as error:
        report.add(BODY_JSON, "$", str(error))
        return None
    request = as_object(value)
    if request is None:
        report.add(BODY_SHAPE, "$", f"the body is no JSON object but {type(value).__name__}")
    elif not check_values(request, "$", report):
        return None
    return request


def _body_text(body: Mapping[str, Any] | bytes, report: Report) -> tuple[str | None, int]:
    if isinstance(body, bytes):
        try:
            return body.decode(), len(body)
        except UnicodeDecodeError as error:
            report.add(BODY_UTF8, "$", str(error))
            return None, len(body)
    try:
        text = json.dumps(dict(body), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except RecursionError:
        report.add(BODY_DEPTH, "$", "nests deeper than an encoder can follow")
    except (TypeError, ValueError) as error:
        report.add(BODY_JSON, "$", str(error))
    else:
        return text, len(text.encode("utf-8", "surrogatepass"))
    return None, 0


def check_values(value: object, path: str, report: Report) -> bool:
    """Check depth, numbers and every string, names included. False: too deep to go on."""
    pending: list[tuple[object, tuple[str | int, ...]]] = [(value, ())]
    while pending:
        node, keys = pending.pop()
        children: Iterable[tuple[str | int, object]] = ()
        if isinstance(node, str):
            _check_text(node, path, keys, report)
        elif isinstance(node, float) and not math.isfinite(node):
            report.add(BODY_JSON, child(path, *keys), "the number is beyond a double's range")
        elif (names := as_object(node)) is not None:
            children = names.items()
            for name in names:
                _check_text(name, path, keys, report)
        elif (items := as_array(node)) is not None:
            children = enumerate(items)
        else:
            continue
        if isinstance(node, dict | list) and len(keys) >= MAX_JSON_DEPTH:
            report.add(BODY_DEPTH, child(path, *keys), f"nests deeper than {MAX_JSON_DEPTH}")
            return False
        pending.extend((item, (*keys, key)) for key, item in children)
    return True


def _check_text(text: str, path: str, keys: tuple[str | int, ...], report: Report) -> None:
    if (found := _SURROGATE.search(text)) is not None:
        message = f"lone surrogate U+{ord(found.group()):04X} at character {found.start()}"
        report.add(TEXT_SURROGATE, child(path, *keys), message)
    if (at := text.find("\0")) >= 0:
        report.add(TEXT_NUL, child(path, *keys), f"NUL at character {at}")
