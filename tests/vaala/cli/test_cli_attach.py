"""`vaala attach`: a person at a terminal, in a conversation that lives in the server."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.cli.processes import PATIENCE_S, on_terminal, read_rest, read_until

Script = Callable[[str], str]
Vaala = Callable[..., Any]

EDIT = """
  - call: {tool: write_file, arguments: {path: new.txt, content: made}, as: edit}
  - say: "{{ results.edit | first_line }}"
"""
HANG = "  - say: Thinking.\n    hang: true\n"
END = b"\x04"


@contextmanager
def _attached(vaala: Vaala, model: str, prompt: str = "begin") -> Iterator[tuple[Any, int, str]]:
    """Attach to a new conversation; yield the process, the terminal and the conversation."""
    conversation_id = vaala("run", "--detach", "-m", model, prompt).out.strip()
    with on_terminal("attach", conversation_id) as (process, master):
        yield process, master, conversation_id


def test_what_is_typed_is_sent_and_answered(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "one"\n  - say: "two: {{ prompt }}"\n')
    with _attached(vaala, model) as (process, master, conversation_id):
        read_until(master, b"> ")
        os.write(master, b"hello\n")
        read_until(master, b"two: hello\r\n> ")
        os.write(master, END)
        left = read_rest(master)
        assert process.wait(PATIENCE_S) == 0
    assert f"it lives on in the server: vaala attach {conversation_id}".encode() in left
    assert vaala("status").out.count("no turn") == 1


def test_it_begins_with_what_was_said_and_how_to_leave(vaala: Vaala, script: Script) -> None:
    model = script("  - say: one\n")
    conversation_id = vaala("run", "--detach", "-m", model, "begin").out.strip()
    assert vaala("wait", conversation_id).code == 0
    with on_terminal("attach", conversation_id) as (process, master):
        shown = read_until(master, b"> ").decode()
        assert shown.startswith(f"begin\r\n{conversation_id}, {Path.cwd()}\r\n")
        assert "--- you, " in shown
        assert "\r\none\r\n" in shown
        assert "Ctrl-D leaves" in shown
        os.write(master, END)
        read_rest(master)
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(
    "waits",
    [
        EDIT,
        "  - call: {tool: ask_user, arguments: {question: Which?}, as: said}\n  - say: ok\n",
    ],
)
def test_ctrl_d_leaves_what_waits_for_a_person(vaala: Vaala, script: Script, waits: str) -> None:
    with _attached(vaala, script(waits)) as (process, master, conversation_id):
        read_until(master, b"] ")
        os.write(master, END)
        left = read_rest(master)
        assert process.wait(PATIENCE_S) == 0
    assert b"vaala: left; it lives on" in left
    (one,) = vaala("inbox", "--json").lines
    assert one["conversationId"] == conversation_id


@pytest.mark.parametrize(("typed", "made"), [(b"y\n", True), (b"n\n", False)])
def test_what_waits_for_a_person_is_asked(
    vaala: Vaala, script: Script, typed: bytes, made: bool
) -> None:
    with _attached(vaala, script(EDIT)) as (process, master, _):
        assert b"? Create new.txt" in read_until(master, b"/n/d] ")
        os.write(master, typed)
        read_until(master, b"> ")
        os.write(master, END)
        read_rest(master)
        assert process.wait(PATIENCE_S) == 0
    assert Path("new.txt").exists() == made


def test_ctrl_c_interrupts_each_turn_anew_and_leaves_where_none_runs(
    vaala: Vaala, script: Script
) -> None:
    with _attached(vaala, script(HANG * 2)) as (process, master, conversation_id):
        read_until(master, b"Thinking.")
        os.write(master, b"\x03")
        read_until(master, b"> ")
        os.write(master, b"again\n")
        read_until(master, b"Thinking.")
        os.write(master, b"\x03")
        read_until(master, b"> ")
        os.write(master, b"\x03")
        read_rest(master)
        assert process.wait(PATIENCE_S) == 130
    (conversation,) = vaala("status", "--json").lines[0]["conversations"]
    assert (conversation["id"], conversation["status"]) == (conversation_id, "idle")
