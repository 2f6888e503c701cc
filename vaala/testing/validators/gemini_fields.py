"""Fields of Gemini's messages, which are protocol buffers written as JSON.

Each field has two names there, "functionCall" and "function_call", and null is an unset field.
Names inside of a schema's properties, of arguments and of results are not fields.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from vaala.testing.validators import gemini_rules as rules
from vaala.testing.validators.common import JsonObject, Report, Rule, as_object, child, show

_UNDERSCORE = re.compile(r"_([a-z0-9])")


def fields_of(
    value: object,
    known: Collection[str],
    path: str,
    report: Report,
    unknown: Rule = rules.KEYS_UNKNOWN,
) -> JsonObject | None:
    """The set fields of a message by their lower camel names; None when it is no object.

    Reports each name that is not among ``known``, and each field that stands under both names.
    """
    node = as_object(value)
    if node is None:
        report.add(rules.FIELD_TYPE, path, f"is no object but {type(value).__name__}")
        return None
    fields: JsonObject = {}
    for key, inner in node.items():
        name = _UNDERSCORE.sub(lambda match: match[1].upper(), key)
        if name not in known:
            report.add(unknown, child(path, key), f"unknown name {show(key)}: cannot find field")
        elif name in fields:
            report.add(rules.KEYS_TWICE, child(path, key), f"{show(name)} stands there already")
        elif inner is not None:
            fields[name] = inner
    return fields
