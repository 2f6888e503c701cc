"""`vaala run --option NAME=VALUE`: options of the model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from vaala.cli.exits import USAGE, CommandFailed

_BARE_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


def read_options(words: Iterable[str]) -> dict[str, Any]:
    """Return the options by name; raises `CommandFailed` that quotes the one that is wrong.

    A value is JSON; a bare word stands for itself, so that a text of one word needs no quotes.
    """
    from vaala.models.options import option_fault
    from vaala.tools.strict_json import NotStrict, parse_value

    options: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise CommandFailed(f"--option {word}: write NAME=VALUE, as in temperature=0.2", USAGE)
        try:
            options[name] = parse_value(text)
        except NotStrict as error:
            if not _BARE_WORD.fullmatch(text):
                fault = f"--option {word}: the value is no JSON: {error}"
                raise CommandFailed(fault, USAGE) from error
            options[name] = text
        reason = option_fault(name, options[name])
        if reason is not None:
            raise CommandFailed(f"--option {word}: {reason}", USAGE)
    return options
