"""What both formats of OpenAI say of a call: the name of its function, and its arguments."""

from __future__ import annotations

import re

from vaala.testing.validators.common import (
    NotStrictJson,
    Report,
    Rule,
    as_object,
    check_values,
    show,
    strict_json,
)
from vaala.testing.validators.limits import MAX_NAME_CHARS

_NAME = re.compile(rf"[a-zA-Z0-9_-]{{1,{MAX_NAME_CHARS}}}")


def check_name(name: object, rule: Rule, path: str, report: Report) -> str | None:
    """Return the name of a function; None: it is reported."""
    if isinstance(name, str) and _NAME.fullmatch(name) is not None:
        return name
    message = f"{show(name)} is not 1 to {MAX_NAME_CHARS} letters, digits, '_' and '-'"
    report.add(rule, path, message)
    return None


def check_new_name(
    name: object, names: set[str], rules: tuple[Rule, Rule], path: str, report: Report
) -> None:
    """Check the name of a tool and add it to ``names``; ``rules``: it is legal, it is new."""
    legal, unique = rules
    known = check_name(name, legal, path, report)
    if known in names:
        report.add(unique, path, f"a second tool named {show(known)}")
    elif known is not None:
        names.add(known)


def check_arguments(text: object, rule: Rule, path: str, report: Report) -> None:
    """Check that the arguments of a call are the text of a JSON object."""
    if not isinstance(text, str):
        report.add(rule, path, f"is no string but {type(text).__name__}")
        return
    try:
        arguments = strict_json(text)
    except NotStrictJson as error:
        report.add(rule, path, str(error))
        return
    if as_object(arguments) is None:
        report.add(rule, path, f"holds no JSON object but {type(arguments).__name__}")
        return
    # Servers decode the string before they render it, so escapes inside it count as text too.
    check_values(arguments, path, report)
