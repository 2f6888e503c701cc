"""Permission rules: ``tool`` or ``tool(subject)``.

A rule with a subject covers that exact subject and nothing else: no prefix, no pattern. A path is
relative to the working directory where it lies below it; a denial holds for its other names too. A
rule without a subject covers every call of the tool, except on paths outside the workspace's roots,
which only a rule that names the path covers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable

from msgspec import Struct

from vaala.permissions.base import Access
from vaala_protocol.errors import BadRequest

_RULE = re.compile(r"([A-Za-z0-9_-]{1,64})(?:\((.+)\))?", re.DOTALL)
_PATH_KINDS = frozenset({"read", "edit"})


class Rule(Struct, frozen=True):
    tool: str
    subject: str | None = None

    def __str__(self) -> str:
        return self.tool if self.subject is None else f"{self.tool}({self.subject})"

    def allows(self, tool: str, access: Access) -> bool:
        if self.tool != tool:
            return False
        if self.subject is None:
            return not (access.outside and access.kind in _PATH_KINDS)
        return self._named(access) == access.subject

    def denies(self, tool: str, access: Access) -> bool:
        if self.tool != tool or self.subject is None:
            return self.tool == tool
        return self._named(access) in (access.subject, *access.other_names)

    def _named(self, access: Access) -> str | None:
        """Return the subject, a path without detours."""
        if self.subject is None or access.kind not in _PATH_KINDS:
            return self.subject
        return posixpath.normpath(self.subject)


class Rules(Struct, frozen=True):
    """What is allowed and what is denied whatever the mode; a denial beats every allowance."""

    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


def parse_rule(text: str) -> Rule:
    """Read a rule; raises `BadRequest` that names it and the two forms."""
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise BadRequest(
            f"not a permission rule: {text!r}. Write the name of a tool, as in write_file, or a "
            "tool and the exact command or path, as in exec_command(git status)"
        )
    return Rule(found[1], found[2])


def parse_rules(allow: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
    """Read rules; raises `BadRequest` at the first that is none."""
    return Rules(tuple(map(parse_rule, allow)), tuple(map(parse_rule, deny)))


def rule_for(tool: str, access: Access) -> Rule:
    """Return the narrowest rule that covers this call again."""
    return Rule(tool, access.subject or None)
