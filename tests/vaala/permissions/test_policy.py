"""Who decides: rules first, then the mode, then a person."""

from __future__ import annotations

import pytest

from vaala.permissions.base import Access, Allow, Ask, Decision, Deny, PermissionRequest
from vaala.permissions.policy import ModeGate, call_digest
from vaala.permissions.rules import Rule, Rules, parse_rule, parse_rules
from vaala_protocol.calls import OtherDetails
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import MODES, Mode

READ = Access("read", "a.py")
READ_OUTSIDE = Access("read", "/etc/hosts", outside=True)
EDIT = Access("edit", "a.py")
EDIT_OUTSIDE = Access("edit", "/etc/hosts", outside=True)
RUN = Access("execute", "git status")
RUN_OUTSIDE = Access("execute", "git status", outside=True)
NET = Access("network", "https://example.org")
NONE = Access("none")


async def decide(
    access: Access,
    mode: Mode = "ask",
    *,
    rules: Rules | None = None,
    grants: tuple[str, ...] = (),
    tool: str = "t",
) -> Decision:
    return await ModeGate(rules).decide(
        PermissionRequest(tool, access, OtherDetails(title="t"), mode, "s", grants)
    )


@pytest.mark.parametrize(
    ("access", "expected"),
    [
        #                read-only, ask, auto-edit, full
        (READ, (Allow, Allow, Allow, Allow)),
        (READ_OUTSIDE, (Deny, Ask, Ask, Allow)),
        (EDIT, (Deny, Ask, Allow, Allow)),
        (EDIT_OUTSIDE, (Deny, Ask, Ask, Allow)),
        (RUN, (Deny, Ask, Ask, Allow)),
        (RUN_OUTSIDE, (Deny, Ask, Ask, Allow)),
        (NET, (Deny, Ask, Ask, Allow)),
        (NONE, (Allow, Allow, Allow, Allow)),
    ],
)
async def test_modes(access: Access, expected: tuple[type[Decision], ...]) -> None:
    assert MODES == ("read-only", "ask", "auto-edit", "full")
    decisions = [await decide(access, mode) for mode in MODES]
    assert tuple(map(type, decisions)) == expected


async def test_a_denial_names_the_mode_and_the_way_out() -> None:
    decision = await decide(RUN, "read-only", tool="exec_command")
    assert isinstance(decision, Deny)
    assert "exec_command(git status)" in decision.reason
    assert "read-only" in decision.reason
    assert "--mode ask" in decision.reason
    assert "--allow 'exec_command(git status)'" in decision.reason


@pytest.mark.parametrize(
    "command",
    [
        "git status && rm -rf x",  # I5-1, H3-7
        "git status; rm x",
        "git status\nrm x",
        "git status $(touch /tmp/p)",
        "git statu",
        "GIT status",
        "X=1 git status",
        "git status > x",
        "",
    ],
)
@pytest.mark.parametrize("source", ["allow", "grant"])
async def test_a_rule_with_a_subject_covers_that_subject_only(command: str, source: str) -> None:
    text = "exec_command(git status)"
    rules = parse_rules(allow=[text]) if source == "allow" else None
    grants = (text,) if source == "grant" else ()
    same = await decide(RUN, rules=rules, grants=grants, tool="exec_command")
    assert isinstance(same, Allow)
    assert text in same.reason
    other = await decide(
        Access("execute", command), rules=rules, grants=grants, tool="exec_command"
    )
    assert isinstance(other, Ask)
    assert isinstance(await decide(RUN, rules=rules, grants=grants, tool="exec"), Ask)


async def test_a_rule_for_a_tool_stays_inside_the_roots() -> None:
    rules = parse_rules(allow=["edit_file"])
    assert isinstance(await decide(EDIT, rules=rules, tool="edit_file"), Allow)
    assert isinstance(await decide(EDIT, "read-only", rules=rules, tool="edit_file"), Allow)
    assert isinstance(await decide(EDIT_OUTSIDE, rules=rules, tool="edit_file"), Ask)
    exact = parse_rules(allow=["edit_file(/etc/hosts)"])
    assert isinstance(await decide(EDIT_OUTSIDE, rules=exact, tool="edit_file"), Allow)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("deny", ["t", "t(git status)"])
async def test_deny_beats_everything(mode: Mode, deny: str) -> None:
    rules = parse_rules(allow=["t", "t(git status)"], deny=[deny])
    decision = await decide(RUN, mode, rules=rules, grants=("t",))
    assert isinstance(decision, Deny)
    assert deny in decision.reason


async def test_a_denied_tool_is_denied_outside_the_roots_too() -> None:
    rules = parse_rules(deny=["t"])
    assert isinstance(await decide(EDIT_OUTSIDE, "full", rules=rules), Deny)


async def test_the_options_say_what_they_would_remember() -> None:
    decision = await decide(RUN, tool="exec_command")
    assert isinstance(decision, Ask)
    assert [(option.kind, option.scope, option.rule) for option in decision.options] == [
        ("allow_once", "call", None),
        ("allow_always", "session", "exec_command(git status)"),
        ("allow_always", "session", "exec_command(git status:*)"),
        ("reject_once", "call", None),
        ("reject_always", "session", "!exec_command(git status)"),
    ]
    assert len({option.id for option in decision.options}) == 5
    # What is remembered covers the same call, and only that.
    grants = (decision.options[1].rule or "",)
    assert isinstance(await decide(RUN, grants=grants, tool="exec_command"), Allow)


async def test_an_edit_can_be_granted_for_the_file_or_for_the_tool() -> None:
    decision = await decide(EDIT, tool="edit_file")
    assert isinstance(decision, Ask)
    assert [option.rule for option in decision.options] == [
        None, "edit_file(a.py)", "edit_file", None, "!edit_file(a.py)",
    ]  # fmt: skip
    outside = await decide(EDIT_OUTSIDE, tool="edit_file")
    assert isinstance(outside, Ask)
    assert [option.rule for option in outside.options] == [
        None, "edit_file(/etc/hosts)", None, "!edit_file(/etc/hosts)",
    ]  # fmt: skip


async def test_labels_are_one_bounded_clean_line() -> None:
    decision = await decide(Access("execute", "echo \x1b[2J\n" + "x" * 10_000))
    assert isinstance(decision, Ask)
    for option in decision.options:
        assert len(option.label) < 300
        assert option.label.isprintable()


async def test_a_grant_that_is_no_rule_grants_nothing() -> None:
    assert isinstance(await decide(RUN, grants=("t(", "t *", "")), Ask)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("write_file", Rule("write_file")),
        (" exec_command(a (b) c) ", Rule("exec_command", "a (b) c")),
        ("exec_command(a\nb)", Rule("exec_command", "a\nb")),
        ("t( x )", Rule("t", " x ")),
    ],
)
def test_rules_read_and_written(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize(
    "text", ["", "*", "exec command", "t(", "t()", "t(a", "t)a(", "(a)", "a b"]
)
def test_a_broken_rule_is_named(text: str) -> None:
    with pytest.raises(BadRequest, match="not a permission rule") as caught:
        parse_rules(allow=["write_file", text])
    assert repr(text) in str(caught.value)


def test_the_digest_covers_tool_and_arguments() -> None:
    assert call_digest("t", "{}") == call_digest("t", "{}")
    assert len({call_digest("t", "{}"), call_digest("t", "{} "), call_digest("t{", "}")}) == 3
    assert len(call_digest("t", "\ud800")) == 64
