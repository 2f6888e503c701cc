"""Schemas of the input of tools that the API takes: one that it refuses fails every request."""

from __future__ import annotations

import re
from typing import Any

from vaala.models.anthropic.limits import PROPERTY_NAME_CHARS_MAX
from vaala.models.schema import legal_parameters

_PROPERTY = re.compile(rf"[a-zA-Z0-9_.-]{{1,{PROPERTY_NAME_CHARS_MAX}}}")


def input_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema of type object, valid JSON Schema of draft 2020-12, without ``oneOf``,
    ``anyOf``, ``allOf`` at the top, and with properties whose names are legal.

    The refusals: "input_schema does not support oneOf, allOf, or anyOf at the top level", "JSON
    schema is invalid", "Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'". A property
    whose name is not legal is left out: the model cannot be told of it.
    """
    legal = _with_legal_names(legal_parameters(schema))
    assert isinstance(legal, dict)
    return legal


def _with_legal_names(node: Any) -> Any:
    if isinstance(node, list):
        return [_with_legal_names(one) for one in node]
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for key, value in node.items():
        if key in ("enum", "const", "default", "examples"):
            found[key] = value
        elif key == "properties" and isinstance(value, dict):
            found[key] = {
                name: _with_legal_names(one)
                for name, one in value.items()
                if _PROPERTY.fullmatch(name)
            }
        elif key == "required" and isinstance(value, list):
            found[key] = [name for name in value if _PROPERTY.fullmatch(str(name))]
        else:
            found[key] = _with_legal_names(value)
    return found
