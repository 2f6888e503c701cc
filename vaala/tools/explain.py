"""What is wrong with a call, in one short text for the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from vaala.tools import limits
from vaala.tools.text import clean_line


def explain(tool: str, problems: Sequence[Mapping[str, Any]], schema: Mapping[str, Any]) -> str:
    named = [_problem(problem, schema) for problem in problems[: limits.PROBLEMS_MAX]]
    more = len(problems) - len(named)
    rest = f"; and {more} more" if more else ""
    return (
        f"{tool} was not run, its arguments are wrong: {'; '.join(named)}{rest}. "
        f"Expected: {schema_text(schema)}"
    )


def _problem(problem: Mapping[str, Any], schema: Mapping[str, Any]) -> str:
    place: Sequence[str | int] = problem["loc"]
    name = ".".join(str(step) for step in place)
    shown = clean_line(name, limits.VALUE_TEXT_CHARS_MAX)
    if problem["type"] == "missing":
        return f"`{shown}` is missing"
    if problem["type"] == "extra_forbidden":
        known = list(schema.get("properties", {})) if len(place) == 1 else []
        return f"there is no argument `{shown}`{meant(name, known)}"
    message = problem["msg"].removeprefix("Input ").removeprefix("Value error, ")
    value = clean_line(json.dumps(problem["input"], default=str), limits.VALUE_TEXT_CHARS_MAX)
    return f"`{shown}` {message[:1].lower()}{message[1:]}, not {value}"


def meant(name: str, known: Sequence[str]) -> str:
    """Return a question after the known name that is most like ``name``, if one is like it."""
    from difflib import get_close_matches  # here: most runs have nothing to explain

    close = get_close_matches(name[: limits.VALUE_TEXT_CHARS_MAX], known, n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a JSON Schema in a short notation: ``{path: string, limit?: integer}``."""
    text = _shape(schema, schema.get("$defs", {}), 0)
    return clean_line(text, limits.SCHEMA_TEXT_CHARS_MAX)


def _shape(schema: Mapping[str, Any], definitions: Mapping[str, Any], depth: int) -> str:
    if depth > 4:
        return "…"
    if isinstance(name := schema.get("$ref"), str):
        return _shape(definitions.get(name.rpartition("/")[2], {}), definitions, depth + 1)
    if "enum" in schema:
        return "|".join(json.dumps(choice) for choice in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    if "anyOf" in schema:
        return "|".join(_shape(part, definitions, depth + 1) for part in schema["anyOf"])
    if schema.get("type") == "array":
        return f"[{_shape(schema.get('items', {}), definitions, depth + 1)}, …]"
    if "properties" in schema or schema.get("type") == "object":
        required = schema.get("required", ())
        parts = [
            f"{name}{'' if name in required else '?'}: {_shape(part, definitions, depth + 1)}"
            for name, part in schema.get("properties", {}).items()
        ]
        return "{" + ", ".join(parts) + "}"
    return str(schema.get("type", "any"))
