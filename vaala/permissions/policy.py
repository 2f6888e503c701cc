"""`ModeGate`: rules first, then the mode, then a person.

| mode      | reads inside | edits inside | all else | paths outside the roots |
|-----------|--------------|--------------|----------|-------------------------|
| read-only | allowed      | denied       | denied   | denied                  |
| ask       | allowed      | asks         | asks     | asks                    |
| auto-edit | allowed      | allowed      | asks     | asks                    |
| full      | allowed      | allowed      | allowed  | allowed                 |

All else are commands, the network, and tools whose effect only they know.

Calls that touch nothing outside the runtime are allowed in every mode.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence

from vaala.permissions.base import (
    Access,
    Allow,
    Ask,
    Decision,
    Deny,
    PermissionGate,
    PermissionRequest,
)
from vaala.permissions.rules import Rule, Rules, parse_rule, rule_for
from vaala.tools.text import clean_line
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import ApprovalOption

_SHOWN_CHARS_MAX = 200
_VERBS = {
    "none": "run",
    "read": "read",
    "edit": "change",
    "execute": "run",
    "network": "reach",
    "other": "run",
}


def call_digest(tool: str, arguments: str) -> str:
    """Return the SHA-256, in hex, of a tool's name and the arguments as the model wrote them."""
    text = f"{len(tool)}:{tool}{arguments}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


class ModeGate(PermissionGate):
    """Decides from its rules, the session's grants and the session's mode. Keeps no state."""

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()

    async def decide(self, request: PermissionRequest) -> Decision:
        tool, access = request.tool, request.access
        for rule in self._rules.deny:
            if rule.denies(tool, access):
                return Deny(
                    f"{_what(request)} is denied by the rule {rule}. Only the user can change "
                    "that, in the configured permissions; go on without it"
                )
        for rule in (*self._rules.allow, *_granted(request.grants)):
            if rule.allows(tool, access):
                return Allow(f"rule {rule}")
        return _by_mode(request)


def _granted(grants: Sequence[str]) -> list[Rule]:
    """Return the grants that are rules; one that a newer version wrote grants nothing here."""
    rules: list[Rule] = []
    for text in grants:
        try:
            rules.append(parse_rule(text))
        except BadRequest:
            continue
    return rules


def _by_mode(request: PermissionRequest) -> Decision:
    mode, access = request.mode, request.access
    free = access.kind == "read" and not access.outside
    if mode == "auto-edit":
        free = free or (access.kind == "edit" and not access.outside)
    if mode == "full" or access.kind == "none" or free:
        return Allow(f"mode {mode}")
    if mode == "read-only":
        return Deny(
            f"{_what(request)} is not allowed in the mode read-only, which only reads inside the "
            "working directory. The user can choose another mode (--mode ask) or allow this call "
            f"(--allow {shlex.quote(_what(request))}); go on without it"
        )
    return Ask(options_for(request), _why(access))


def options_for(request: PermissionRequest) -> tuple[ApprovalOption, ...]:
    """Return what a person can answer: once, for the session with the exact rule, or no."""
    access = request.access
    narrow = rule_for(request.tool, access)
    options = [ApprovalOption(id="allow", kind="allow_once", label="Allow once")]
    if narrow.subject is not None:
        options.append(
            ApprovalOption(
                id="allow-session",
                kind="allow_always",
                label=f"Allow {_exactly(request)}, in this conversation",
                scope="session",
                rule=str(narrow),
            )
        )
    if access.kind != "execute" and not access.outside:
        options.append(
            ApprovalOption(
                id="allow-tool",
                kind="allow_always",
                label=f"Allow every {request.tool} {_where(access)}in this conversation",
                scope="session",
                rule=request.tool,
            )
        )
    options.append(ApprovalOption(id="reject", kind="reject_once", label="Reject"))
    return tuple(options)


def _exactly(request: PermissionRequest) -> str:
    """Say what the narrowest rule covers: of a file all changes, of all else this one alone."""
    access = request.access
    if access.kind == "execute":
        return "exactly this command"
    if access.kind in ("read", "edit"):
        return f"every {request.tool} of {clean_line(access.subject, _SHOWN_CHARS_MAX)}"
    return f"exactly {_what(request)}"


def _where(access: Access) -> str:
    return "inside the working directory, " if access.kind in ("read", "edit") else ""


def _what(request: PermissionRequest) -> str:
    """Return the call as a rule names it, on one line, cut when it is long."""
    return clean_line(str(rule_for(request.tool, request.access)), _SHOWN_CHARS_MAX)


def _why(access: Access) -> str:
    if access.outside:
        return f"to {_VERBS[access.kind]} outside the working directory"
    return {
        "edit": "to change a file",
        "execute": "to run a command",
        "other": "to run a tool whose effect is not known",
    }.get(access.kind, "to reach the network")
