"""The rules of ``--allow``: they hold for one run, wherever the conversation lives.

A runtime in this process gets them into its gate. A server has its own gate, which other clients
share; there this client answers what the gate asks, once for each call that a rule covers, and
the answer's reason names the rule. Nothing of it is remembered.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct

from vaala.cli.exits import USAGE, CommandFailed
from vaala.cli.guess import did_you_mean
from vaala.permissions.base import Access, AccessKind
from vaala.permissions.rules import (
    Command,
    Rule,
    Rules,
    RuleWords,
    allowing,
    parse_rule,
    parse_rules,
)
from vaala.permissions.shell import read_script
from vaala_protocol.calls import FileChangeDetails, ReadDetails, SearchDetails
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import Approval, ToolCall

_COMMAND_TOOLS = frozenset({"exec_command", "write_stdin"})


class RunRules(Struct, frozen=True):
    rules: Rules = Rules()
    only: bool = False
    """What no rule covers is rejected, as the mode read-only does."""

    @classmethod
    def parse(cls, allow: Sequence[str], *, only: bool = False) -> RunRules:
        """Read rules; raises `BadRequest` at the first that is none."""
        return cls(parse_rules(allow), only)

    def covering(self, approval: Approval, call: ToolCall | None) -> Rule | None:
        """Return the rule that covers the call an approval is for."""
        if call is None:
            return None
        executor = getattr(call.details, "executor", "local")
        mine = [rule for rule in self.rules.allow if rule.is_for(call.name, executor)]
        if not mine:
            return None
        access = _access(call, _offered(approval))
        command = None
        if access.kind == "execute":
            command = Command(read_script(access.subject), RuleWords())
        return allowing(mine, access, command)


def check_tools(rules: RunRules, tools: Collection[str]) -> None:
    """Raise `CommandFailed` for a rule whose tool is none of ``tools``."""
    for rule in rules.rules.allow:
        if not rule.tool.endswith("*") and rule.tool not in tools:
            guess = did_you_mean(rule.tool, list(tools)) or f"; there are {', '.join(tools)}"
            raise CommandFailed(f"--allow {rule}: no tool is called {rule.tool!r}{guess}", USAGE)


def _offered(approval: Approval) -> list[Rule]:
    """Return the rules that a person could grant for this call: those that cover it."""
    rules: list[Rule] = []
    for option in approval.options:
        try:
            rules += [parse_rule(option.rule)] if option.rule else []
        except BadRequest:  # of a newer server
            continue
    return rules


def _access(call: ToolCall, offered: Sequence[Rule]) -> Access:
    """Return what the call touches, as far as the rules say that a person could grant for it."""
    kind: AccessKind = "other"
    if call.name in _COMMAND_TOOLS:
        kind = "execute"
    elif isinstance(call.details, FileChangeDetails | ReadDetails | SearchDetails):
        kind = "edit"
    subject = next((rule.subject for rule in offered if rule.subject), "")
    return Access(kind, subject, outside=Rule(call.name) not in offered)
