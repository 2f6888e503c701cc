"""The rules of ``--allow``: they hold for one run, wherever the conversation lives.

A runtime in this process gets them into its gate. A server has its own gate, which other clients
share; there this client answers what the gate asks, once for each call that a rule covers, and
the answer's reason names the rule. Nothing of it is remembered.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Sequence

from msgspec import Struct

from vaala.cli.exits import USAGE, CommandFailed
from vaala.cli.guess import did_you_mean
from vaala.permissions.rules import Rule, Rules, parse_rule, parse_rules
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import Approval, ToolCall

_COMMAND_TOOLS = frozenset({"exec_command", "write_stdin"})
"""A rule for one of these covers every call of it, although no person is offered such a rule."""


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
        offered = _offered(approval)
        for rule in self.rules.allow:
            if any(_same(rule, other) for other in offered):
                return rule
            whole = call is not None and rule == Rule(call.name)
            if whole and rule.tool in _COMMAND_TOOLS:
                return rule
        return None


def check_tools(rules: RunRules, tools: Collection[str]) -> None:
    """Raise `CommandFailed` for a rule whose tool is none of ``tools``."""
    for rule in rules.rules.allow:
        if rule.tool not in tools:
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


def _same(rule: Rule, offered: Rule) -> bool:
    if rule == offered or rule.subject is None or offered.subject is None:
        return rule == offered
    if rule.tool in _COMMAND_TOOLS or "://" in rule.subject:
        return False
    return Rule(rule.tool, posixpath.normpath(rule.subject)) == offered
