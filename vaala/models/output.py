"""What wire formats have in common where an answer shall be a document that matches a schema.

Servers compile the schema, and each compiles a part of JSON Schema only. What a format cannot say
is told in the instructions; the check of the answer stays with us, against the schema as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from vaala.models.base import OutputFormat
from vaala.models.limits import OUTPUTS_REMEMBERED_MAX
from vaala.models.wire import json_bytes
from vaala.text import is_blank

NAME = "answer"
"""What the schema is called where it needs a name."""

_STRICT = frozenset(
    (
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("anyOf", "$ref", "$defs", "title", "description", "pattern"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems"),
    )
)
"""Keywords that OpenAI holds an answer to (platform.openai.com/docs/guides/structured-outputs,
"Supported schemas")."""
_HOLDS_ONE = ("items", "additionalProperties", "not", "contains", "propertyNames")
_HOLDS_LIST = ("anyOf", "oneOf", "allOf", "prefixItems")
_HOLDS_MAP = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def instructions_with(instructions: str, output: OutputFormat) -> str:
    """Return instructions that ask for the document, too."""
    schema = json_bytes(output.schema).decode()
    text = (
        "When you give your final answer, it must be one JSON document that matches this JSON"
        " Schema, with no words and no Markdown before or after it. Tools may be called before"
        f" that as usual. The schema:\n{schema}"
    )
    return text if is_blank(instructions) else f"{instructions}\n\n{text}"


def is_object(schema: Mapping[str, Any]) -> bool:
    """Tell whether the document is an object: other documents are not known to every server."""
    return schema.get("type") == "object"


def is_strict(schema: dict[str, Any]) -> bool:
    """Tell whether OpenAI would hold an answer to all of the schema.

    Objects are closed there, with each property required: "'additionalProperties' is required to
    be supplied and to be false", "'required' is required to be supplied and to be an array
    including every key in properties".
    """
    return all(
        node.keys() <= _STRICT and _is_closed(node) for node in subschemas(schema)
    ) and not any(keyword in schema for keyword in ("anyOf", "enum", "const"))


def _is_closed(node: Mapping[str, Any]) -> bool:
    kinds = node.get("type")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return "properties" not in node
    names = node.get("properties", {})
    return node.get("additionalProperties") is False and set(node.get("required", ())) == set(names)


def subschemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield the schema and those inside it, without booleans. It is one without a fault."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for keyword in _HOLDS_ONE:
            value = node.get(keyword)
            waiting += value if isinstance(value, list) else [value]
        for keyword in _HOLDS_LIST:
            waiting += node.get(keyword, ())
        for keyword in _HOLDS_MAP:
            waiting += node.get(keyword, {}).values()


class Refusals:
    """What servers refused of such requests, by model and schema: it is not asked for again."""

    def __init__(self) -> None:
        self._levels: dict[tuple[str, bytes], int] = {}

    def level(self, model: str, output: OutputFormat | None) -> int:
        """Return how often less was to be asked for, from 0."""
        return 0 if output is None else self._levels.get(_key(model, output), 0)

    def lower(self, model: str, output: OutputFormat) -> None:
        """Ask for less from now on."""
        key = _key(model, output)
        level = self._levels.pop(key, 0) + 1
        if len(self._levels) >= OUTPUTS_REMEMBERED_MAX:
            del self._levels[next(iter(self._levels))]
        self._levels[key] = level


def _key(model: str, output: OutputFormat) -> tuple[str, bytes]:
    return model, hashlib.sha256(json_bytes(output.schema)).digest()
