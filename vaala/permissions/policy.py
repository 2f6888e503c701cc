"""`ModeGate`: rules first, then the mode, then a person.

| mode      | reads inside | edits inside | all else | paths outside the roots |
|-----------|--------------|--------------|----------|-------------------------|
| read-only | allowed      | denied       | denied   | denied                  |
| ask       | allowed      | asks         | asks     | asks                    |
| auto-edit | allowed      | allowed      | asks     | asks                    |
| full      | allowed      | allowed      | allowed  | allowed                 |

All else are commands, the network, and tools whose effect only they know.

Calls that touch nothing outside the runtime are allowed in every mode. What tells git, or vaala,
what to run is never changed without a question, but in the mode full.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from vaala.permissions.base import (
    Access,
    Allow,
    Ask,
    Decision,
    Deny,
    PermissionGate,
    PermissionRequest,
)
from vaala.permissions.programs import prefix_of
from vaala.permissions.rules import Command, Rule, Rules, RuleWords, allowing, parse_rule, rule_for
from vaala.permissions.shell import Script, read_script
from vaala.tools.text import clean_line
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import ApprovalOption

_SHOWN_CHARS_MAX = 200
_DENIES = "!"
"""Before a rule that was granted to a session: it denies."""
_RUN_FROM = frozenset({".git", ".hg", ".vaala", ".mcp.json"})
"""Directories and files whose content makes programs run others."""
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


class Ruling(Struct, frozen=True):
    """What rules say of a call, before its mode is asked."""

    verdict: Literal["allow", "deny", "ask", "open"]
    rule: Rule | None = None
    why: str = ""
    """Why a person is asked whatever the mode."""


class ModeGate(PermissionGate):
    """Decides from its rules, the session's grants and the session's mode. Keeps nothing of a
    session."""

    def __init__(self, rules: Rules | None = None) -> None:
        self._rules = rules or Rules()
        self._words = RuleWords()

    async def decide(self, request: PermissionRequest) -> Decision:
        if request.mode == "full" and self._rules == Rules() and not request.grants:
            return _by_mode(request, None)
        command = self._command(request.access)
        script = None if command is None else command.script
        ruling = self._ruling(request, command)
        match ruling.verdict:
            case "deny":
                return Deny(
                    f"{_what(request)} is denied by the rule {ruling.rule}. Only the user can "
                    "change that, in the configured permissions; go on without it"
                )
            case "allow":
                return Allow(f"rule {ruling.rule}")
            case "ask" if request.mode != "read-only":
                return Ask(options_for(request, script), ruling.why)
            case _:
                return _by_mode(request, script)

    def _ruling(self, request: PermissionRequest, command: Command | None) -> Ruling:
        """Say what the rules and grants say: a denial first, then a question, then an allowance.

        Where the shell could do what cannot be read, a rule that denies or asks for a command
        makes it a question in every mode.
        """
        access, executor = request.access, getattr(request.details, "executor", "local")
        rules = _with_grants(self._rules, request.grants)

        def mine(given: Sequence[Rule]) -> list[Rule]:
            return [rule for rule in given if rule.is_for(request.tool, executor)]

        deny, ask = mine(rules.deny), mine(rules.ask)
        if (rule := next((one for one in deny if one.denies(access, command)), None)) is not None:
            return Ruling("deny", rule)
        if (rule := next((one for one in ask if one.denies(access, command)), None)) is not None:
            return Ruling("ask", rule, f"the rule {rule} says so")
        rule = allowing(mine(rules.allow), access, command)
        if rule is not None:
            return Ruling("allow", rule)
        doubted = [one for one in (*deny, *ask) if one.subject is not None]
        if command is not None and doubted and not command.script.sure:
            why = f"it may run what the rule {doubted[0]} is about: {command.script.unsure}"
            return Ruling("ask", doubted[0], why)
        return Ruling("open")

    def _command(self, access: Access) -> Command | None:
        if access.kind != "execute":
            return None
        return Command(read_script(access.subject), self._words)


def _with_grants(rules: Rules, grants: Sequence[str]) -> Rules:
    """Return the rules with a session's grants; one that a newer version wrote grants nothing."""
    allow: list[Rule] = []
    deny: list[Rule] = []
    for text in grants:
        try:
            given = deny if text.startswith(_DENIES) else allow
            given.append(parse_rule(text.removeprefix(_DENIES)))
        except BadRequest:
            continue
    return rules.plus(Rules(tuple(allow), tuple(deny)))


def _by_mode(request: PermissionRequest, script: Script | None) -> Decision:
    mode, access = request.mode, request.access
    free = access.kind == "read" and not access.outside
    if mode == "auto-edit" and access.kind == "edit" and not access.outside:
        free = free or not _runs(access)
    if mode == "full" or access.kind == "none" or free:
        return Allow(f"mode {mode}")
    if mode == "read-only":
        return Deny(
            f"{_what(request)} is not allowed in the mode read-only, which only reads inside the "
            "working directory. The user can choose another mode (--mode ask) or allow this call "
            f"(--allow {shlex.quote(_what(request))}); go on without it"
        )
    return Ask(options_for(request, script), _why(access))


def _runs(access: Access) -> bool:
    names = (access.subject, *access.other_names)
    return any(not _RUN_FROM.isdisjoint(name.split("/")) for name in names)


def options_for(
    request: PermissionRequest, script: Script | None = None
) -> tuple[ApprovalOption, ...]:
    """Return what a person can answer: once, for the session with the exact rule, or no.

    A command of which it is known what it does is offered as such, too: ``git log`` with whatever
    follows.
    """
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
    options += _of_beginning(request, script)
    options.append(ApprovalOption(id="reject", kind="reject_once", label="Reject"))
    if narrow.subject is not None:
        options.append(
            ApprovalOption(
                id="reject-session",
                kind="reject_always",
                label=f"Reject {_exactly(request)}, in this conversation",
                scope="session",
                rule=f"{_DENIES}{narrow}",
            )
        )
    return tuple(options)


def _of_beginning(request: PermissionRequest, script: Script | None) -> list[ApprovalOption]:
    if script is None or not script.sure or len(script.commands) != 1 or request.access.outside:
        return []
    words = prefix_of(script.commands[0])
    if not words:
        return []
    beginning = shlex.join(words)
    rule = f"{request.tool}({beginning}:*)"
    label = clean_line(f"Allow commands that begin with {beginning}", _SHOWN_CHARS_MAX)
    scopes: tuple[tuple[Literal["session", "config"], str], ...]
    scopes = (("session", "in this conversation"), ("config", "always"))
    return [
        ApprovalOption(
            id=f"allow-beginning-{scope}",
            kind="allow_always",
            label=f"{label}, {when}",
            scope=scope,
            rule=rule,
        )
        for scope, when in scopes[: 1 + request.can_keep]
    ]


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
    if access.kind == "edit" and _runs(access):
        return "to change a file that makes programs run others"
    return {
        "edit": "to change a file",
        "execute": "to run a command",
        "other": "to run a tool whose effect is not known",
    }.get(access.kind, "to reach the network")
