"""`vaala permissions`, and rules that are kept in permissions.yaml."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Vaala = Callable[..., Any]


@pytest.fixture
def rules(isolated: Path) -> Path:
    file = isolated / ".config/vaala/permissions.yaml"
    file.parent.mkdir(parents=True)
    return file


def test_the_rules_are_listed(vaala: Vaala, rules: Path) -> None:
    assert "there are no rules" in vaala("permissions", "list").out
    rules.write_text("allow: ['exec_command(git log:*)']\ndeny: [write_file]\n")
    assert vaala("permissions", "list").out.splitlines() == [
        "deny   write_file",
        "allow  exec_command(git log:*)",
    ]
    listed = json.loads(vaala("permissions", "list", "--json").out)
    assert listed == {"deny": ["write_file"], "ask": [], "allow": ["exec_command(git log:*)"]}


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "git log -3",
            ["allowed: rule exec_command(git log:*)", "git log -3: covered by the rule"],
        ),
        ("git log | head", ["you would be asked", "head: covered by no rule"]),
        ("git log --output=x", ["you would be asked", "does not cover --output=x"]),
        ("git log > x", ["no rule can cover it: it reads or writes a file with < or >"]),
        ("git push", ["denied: exec_command(git push) is denied by the rule"]),
        ("$(id)", ["you would be asked: it may run what the rule exec_command(git push:*) is"]),
    ],
)
def test_a_command_is_explained(vaala: Vaala, rules: Path, command: str, told: list[str]) -> None:
    rules.write_text("allow: ['exec_command(git log:*)']\ndeny: ['exec_command(git push:*)']\n")
    result = vaala("permissions", "explain", command)
    assert result.code == 0
    for line in told:
        assert line in result.out
    assert json.loads(vaala("permissions", "explain", "--json", command).out)["verdict"] in (
        "allowed", "denied", "you would be asked",
    )  # fmt: skip


def test_a_path_is_explained(vaala: Vaala, rules: Path, tmp_path: Path) -> None:
    rules.write_text("allow: ['edit_file(docs:*)']\n")
    explain = ("permissions", "explain", "--tool", "edit_file")
    assert vaala(*explain, "docs/a.md").out.startswith("allowed: rule edit_file(docs:*)")
    assert vaala(*explain, "documents/a.md").out.startswith("you would be asked: to change a file")
    outside = vaala(*explain, "/etc/hosts", "--mode", "auto-edit").out
    assert "outside the working directory" in outside
    assert vaala(*explain, "a.py", "--mode", "auto-edit").out.startswith("allowed: mode auto-edit")
    git = vaala(*explain, ".git/config", "--mode", "auto-edit").out
    assert git.startswith("you would be asked: to change a file that makes programs run others")


def test_a_rule_that_is_none_is_named_with_its_line(vaala: Vaala, rules: Path) -> None:
    rules.write_text("allow:\n  - edit_file\n  - bash -c\ndeny: ['t(']\n")
    result = vaala("permissions", "list")
    assert result.code == 2
    assert "permissions.yaml:3: allow.1: not a permission rule: 'bash -c'" in result.err
    assert "permissions.yaml:4: deny.0" in result.err
    rules.write_text("allow: ['exec_command(bash:*)']\n")
    assert "would allow every command" in vaala("permissions", "list").err


def test_bad_use_is_told(vaala: Vaala) -> None:
    assert vaala("permissions", "explain").code == 2
    assert vaala("permissions", "list", "x").code == 2
    assert vaala("permissions", "explain", "--tool", "x", "y").code == 2
