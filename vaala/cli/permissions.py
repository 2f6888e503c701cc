"""`vaala permissions`: the rules that are in force, and how a call would be decided."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from functools import partial

from vaala.cli.allowing import RunRules
from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import mapped, run_program
from vaala.cli.standard import say
from vaala.config.errors import ConfigError
from vaala.config.load import load_config
from vaala.paths import config_directory
from vaala.permissions.base import Access, AccessKind, Allow, Ask, Decision, PermissionRequest
from vaala.permissions.policy import ModeGate
from vaala.permissions.programs import guarded
from vaala.permissions.rules import Rule, Rules, RuleWords
from vaala.permissions.shell import Script, SimpleCommand, read_script
from vaala.tools.builtin import builtin_tools
from vaala.tools.files import access_to, find_place
from vaala.tools.text import clean_line
from vaala_executors.local import LocalExecutor
from vaala_protocol.base import encode
from vaala_protocol.calls import CommandDetails, OtherDetails
from vaala_protocol.errors import Refused

_COMMAND = "exec_command"
_KINDS: dict[str, AccessKind] = {
    "read_file": "read", "list_dir": "read", "search": "read",
    "write_file": "edit", "edit_file": "edit",
}  # fmt: skip
_SHOWN_CHARS_MAX = 200


def main(arguments: Namespace) -> int:
    if arguments.action == "list":
        if arguments.call:
            text = f"permissions list: takes no {' '.join(arguments.call)!r}"
            raise CommandFailed(text, USAGE)
        return _list(_rules(()), as_json=arguments.json)
    if not arguments.call:
        raise CommandFailed("permissions explain: give a command, or with --tool a path", USAGE)
    return run_program(partial(_explain, arguments))


def _rules(allow: Sequence[str]) -> Rules:
    try:
        more = RunRules.parse(allow).rules
        config = load_config(config_directory(os.environ), os.environ, tools=builtin_tools().names)
    except (ConfigError, Refused) as error:
        raise mapped(error) from error
    return config.rules.plus(more)


def _list(rules: Rules, *, as_json: bool) -> int:
    named = {"deny": rules.deny, "ask": rules.ask, "allow": rules.allow}
    if as_json:
        say(encode({name: [str(rule) for rule in given] for name, given in named.items()}).decode())
        return DONE
    for name, given in named.items():
        for rule in given:
            say(f"{name:6} {clean_line(str(rule), _SHOWN_CHARS_MAX)}")
    if not any(named.values()):
        say("there are no rules: the mode decides, and in the mode ask you (permissions.yaml)")
    return DONE


async def _explain(arguments: Namespace) -> int:
    tool, text = arguments.tool or _COMMAND, " ".join(arguments.call)
    rules = _rules(arguments.allow or ())
    access = await _access(tool, text)
    details = (
        CommandDetails(command=text, cwd=".") if tool == _COMMAND else OtherDetails(title=text)
    )
    request = PermissionRequest(tool, access, details, arguments.mode or "ask", "")
    decision = await ModeGate(rules).decide(request)
    script = read_script(access.subject) if access.kind == "execute" else None
    verdict, why = _told(decision)
    if arguments.json:
        say(encode({
            "tool": tool, "subject": access.subject, "outside": access.outside,
            "mode": request.mode, "verdict": verdict, "why": why,
            "unsure": "" if script is None else script.unsure,
            "commands": [] if script is None else [
                {"words": list(one.texts), "rule": _name(_rule_of(rules, one))}
                for one in script.commands
            ],
        }).decode())  # fmt: skip
        return DONE
    say(f"{verdict}: {why}")
    for line in _lines(rules, access, script):
        say(f"  {line}")
    return DONE


async def _access(tool: str, text: str) -> Access:
    if tool == _COMMAND:
        return Access("execute", text)
    kind = _KINDS.get(tool)
    if kind is None:
        known = ", ".join((_COMMAND, *_KINDS))
        raise CommandFailed(f"--tool {tool}: it is none of {known}", USAGE)
    async with LocalExecutor() as executor, executor.open_workspace(os.getcwd()) as workspace:
        return access_to(workspace, await find_place(workspace, text), kind)


def _told(decision: Decision) -> tuple[str, str]:
    match decision:
        case Allow(reason=reason):
            return "allowed", reason
        case Ask(reason=reason):
            return "you would be asked", reason
        case _:
            return "denied", decision.reason


def _lines(rules: Rules, access: Access, script: Script | None) -> list[str]:
    if script is None:
        where = "outside the working directory" if access.outside else "in the working directory"
        return [f"{clean_line(access.subject, _SHOWN_CHARS_MAX)} is {where}"]
    lines = [f"no rule can cover it: {script.unsure}"] if script.unsure else []
    for one in script.commands:
        words = " ".join("?" if text is None else text for text in one.texts)
        lines.append(f"{clean_line(words, _SHOWN_CHARS_MAX)}: {_covering(rules, one)}")
    return lines


def _covering(rules: Rules, command: SimpleCommand) -> str:
    rule = _rule_of(rules, command)
    if rule is not None:
        return f"covered by the rule {rule}"
    words = RuleWords()
    for near in rules.allow:
        mine = words.of(near.subject) if near.tool == _COMMAND and near.subject else ()
        if mine and command.texts[: len(mine)] == mine and (what := guarded(command, len(mine))):
            return f"the rule {near} does not cover {what}, which can write or run something"
    return "covered by no rule"


def _rule_of(rules: Rules, command: SimpleCommand) -> Rule | None:
    mine = [rule for rule in rules.allow if rule.is_for(_COMMAND, "local")]
    return next((rule for rule in mine if rule.covers(command, RuleWords())), None)


def _name(rule: Rule | None) -> str | None:
    return None if rule is None else str(rule)
