"""`vaala` as a process: signals, pipes, a terminal, closed descriptors."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.vaala.cli.processes import (
    PATIENCE_S,
    PROGRAM,
    is_alive,
    on_terminal,
    read_rest,
    read_until,
    started,
    wait_for,
)

Script = Callable[[str], str]
EDIT = """
  - call: {tool: write_file, arguments: {path: new.txt, content: made}, as: edit}
  - say: "{{ results.edit | first_line }}"
"""
ASK = """
  - call: {tool: ask_user, arguments: {question: "Which colour?", choices: [red, green]}, as: said}
  - say: "{{ results.said }}"
"""
HANG = "  - say: Thinking.\n    hang: true\n"


def test_ctrl_c_interrupts_the_turn_and_keeps_what_was_said(script: Script) -> None:
    with started("run", "--in-process", "--model", script(HANG), "go") as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"Thinking.")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert out == b"\n"
    assert b"interrupting; Ctrl-C again to quit at once" in err
    shown = subprocess.run(
        [*PROGRAM, "run", "--in-process", "--continue",
         "--model", script('  - say: "{{ prompt }}"\n'), "more"],
        capture_output=True, check=False, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert (shown.returncode, shown.stdout) == (0, b"more\n")


def test_a_second_ctrl_c_quits_and_ends_what_the_agent_runs(script: Script) -> None:
    """The command ignores TERM, so that the first Ctrl-C has not ended before the second."""
    command = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done"
    model = script(f'  - call: {{tool: exec_command, arguments: {{command: "{command}"}}}}\n')
    with started("run", "--in-process", "--model", model, "--mode", "full", "go") as process:
        assert process.stderr is not None
        wait_for(Path("pid"))
        process.send_signal(signal.SIGINT)
        read_until(process.stderr.fileno(), b"interrupting")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert not is_alive(int(Path("pid").read_text()))


def test_term_ends_the_run_in_order(script: Script) -> None:
    with started("run", "--in-process", "--model", script(HANG), "go") as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"Thinking.")
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"Traceback" not in err


def test_a_reader_that_goes_away_ends_the_run_quietly(script: Script) -> None:  # J4-2
    steps = "  - repeat: 500\n    steps:\n      - {say: line, call: " + (
        "{tool: list_dir, arguments: {path: .}}}\n"
    )
    with started("run", "--in-process", "--model", script(steps), "go") as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"line")
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        process.wait(PATIENCE_S)
    assert process.returncode == 141
    assert b"Traceback" not in err


@pytest.mark.parametrize(
    "words",
    [
        ["run", "--in-process", "-m", "scripted", "hi"],
        ["run", "--in-process", "-m", "scripted", "--json", "hi"],
        ["list"], ["list", "--json"], ["show", "0"], ["search", "hi"], ["export", "0", "-"],
        ["--help"], ["run", "--help"], ["--version"], ["completion", "bash"], ["reindex"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_full_disk_behind_stdout_is_one_line(script: Script, words: list[str]) -> None:
    subprocess.run(
        [*PROGRAM, "run", "--in-process", "-m", script("  - say: hi\n"), "hi"],
        check=True,
        capture_output=True,
    )
    done = _into_a_full_disk(*words)
    assert done.returncode == 1
    assert done.stderr.endswith("vaala: stdout cannot be written: No space left on device\n")
    assert done.stderr.count("vaala: ") == 1
    assert "Traceback" not in done.stderr


def _into_a_full_disk(*words: str) -> subprocess.CompletedProcess[str]:
    with Path("/dev/full").open("wb") as full:
        return subprocess.run(
            [*PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, check=False, text=True,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_S, env=_buffered(),
        )  # fmt: skip


def _buffered() -> dict[str, str]:
    """The environment as users have it: stdout is written at the end."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["run", "--json"], 2, "the prompt is empty"),
        (["run", "--json", "--mode", "none", "hi"], 2, "argument --mode"),
        (["run", "--in-process", "--json", "-m", "scripted:none", "hi"], 2, "cannot be read"),
    ],
)
def test_a_command_that_fails_says_why_although_the_disk_is_full(
    words: list[str], code: int, why: str
) -> None:
    done = _into_a_full_disk(*words)
    assert done.returncode == code
    assert why in done.stderr
    assert done.stderr.count("vaala: ") == 1
    assert "Exception" not in done.stderr


@pytest.mark.parametrize("words", [["list"], ["run", "--json"], ["run", "--json", "hi"]])
def test_a_pipe_that_nobody_reads_is_left_quietly(words: list[str]) -> None:  # J4-2
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*PROGRAM, *words], stdout=writing, stderr=subprocess.PIPE, check=False, text=True,
        stdin=subprocess.DEVNULL, timeout=PATIENCE_S, env=_buffered(),
    )  # fmt: skip
    os.close(writing)
    assert done.returncode == 141
    assert "Exception" not in done.stderr


def test_a_full_disk_behind_stderr_changes_nothing(script: Script) -> None:
    model = script("  - call: {tool: list_dir, arguments: {path: .}}\n  - say: hi\n")
    for words, code in ((["run", "--in-process", "-m", model, "hi"], 0), (["show", "zz"], 2)):
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*PROGRAM, *words], stdout=subprocess.PIPE, stderr=full, check=False,
                stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
            )  # fmt: skip
        assert (done.returncode, done.stdout) == (code, b"" if code else b"hi\n")


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_descriptors_take_no_file_and_lose_no_answer(
    script: Script, closed: list[int]
) -> None:  # J4-2
    model = script('  - call: {tool: list_dir, arguments: {path: .}}\n  - say: "done"\n')
    close = "; ".join(f"exec {descriptor}>&-" for descriptor in closed)
    command = " ".join([*PROGRAM, "run", "--in-process", "--model", model, "go"])
    result = subprocess.run(
        ["sh", "-c", f"{close}; exec {command}"], capture_output=True, check=False,
        stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
    )  # fmt: skip
    assert result.returncode == (1 if 1 in closed else 0)
    assert result.stdout == (b"" if 1 in closed else b"done\n")
    if closed == [1]:
        assert result.stderr.endswith(b"vaala: stdout cannot be written: it is closed\n")
    assert b"Traceback" not in result.stderr


def test_a_second_run_on_the_same_data_names_the_holder(script: Script) -> None:
    with started("run", "--in-process", "--model", script(HANG), "go") as process:
        assert process.stdout is not None
        read_until(process.stdout.fileno(), b"Thinking.")
        second = subprocess.run(
            [*PROGRAM, "run", "--in-process", "--model", "scripted", "hi"],
            capture_output=True, check=False,
            stdin=subprocess.DEVNULL, timeout=PATIENCE_S,
        )  # fmt: skip
        assert second.returncode == 4
        told = f"in use by process {process.pid} (vaala): leave out --in-process, end it".encode()
        assert told in second.stderr
        assert second.stderr.count(b"\n") == 1
        listed = subprocess.run(
            [*PROGRAM, "list"], capture_output=True, check=False, stdin=subprocess.DEVNULL
        )
        assert (listed.returncode, b"go" in listed.stdout) == (0, True)


@pytest.mark.parametrize(
    ("typed", "answer", "made"),
    [
        (b"y\n", b"Created new.txt", True),
        (b"a\n", b"Created new.txt", True),
        (b"what\ny\n", b"Created new.txt", True),
        (b"YES\n", b"Created new.txt", True),
        (b"Always\n", b"Created new.txt", True),
        (b"No\n", b"Refused by vaala run", False),
        (b"n use old.txt\n", b"use old.txt", False),
        (b"\x04", b"the terminal was closed", False),
    ],
)
def test_a_person_is_asked_on_the_terminal(
    script: Script, typed: bytes, answer: bytes, made: bool
) -> None:
    with on_terminal("run", "--model", script(EDIT), "write it") as (process, master):
        asked = read_until(master, b"/n/d] ")
        assert b"? Create new.txt\r\n    @@ -0,0 +1,1 @@\r\n    +made\r\n" in asked
        assert b"Allow every write_file of new.txt, in this conversation" in asked
        for line in typed.splitlines(keepends=True):
            os.write(master, line)
            if line == b"what\n":
                helped = read_until(master, b"/n/d] ")
                assert b"Type one of y (Allow once), a (Allow every" in helped
        shown = read_rest(master)
        process.wait(PATIENCE_S)
    assert process.returncode == 0
    assert answer in shown
    assert Path("new.txt").exists() == made


@pytest.mark.parametrize(
    ("typed", "answer"),
    [(b"2\n", b"green"), (b"3\n", b"3"), (b"blue\n", b"blue"), (b"\n", b"want to answer")],
)
def test_a_question_is_put_to_the_person_on_the_terminal(
    script: Script, typed: bytes, answer: bytes
) -> None:
    with on_terminal("run", "--model", script(ASK), "paint it") as (process, master):
        asked = read_until(master, b"no answer] ")
        assert b"? Which colour?\r\n  1  red\r\n  2  green\r\n" in asked
        os.write(master, typed)
        shown = read_rest(master)
        process.wait(PATIENCE_S)
    assert process.returncode == 0
    assert answer in shown.removeprefix(typed)


def test_nothing_is_shown_while_a_question_waits_and_questions_come_in_turn(
    script: Script,
) -> None:
    model = script("""
  - say: "Two files."
    call:
      - {tool: write_file, arguments: {path: one.txt, content: "1"}, as: one}
      - {tool: write_file, arguments: {path: two.txt, content: "2"}, as: two}
      - {tool: list_dir, arguments: {path: .}}
  - say: "done"
""")
    with on_terminal("run", "--model", model, "write it") as (process, master):
        first = read_until(master, b"/n/d] ")
        assert b"Two files.\r\n" in first
        assert first.count(b"? Create") == 1
        assert b"\n? Create one.txt" in first
        assert first.endswith(b"/n/d] ")
        ready, _, _ = select.select([master], [], [], 0.3)
        assert not ready, os.read(master, 4096)
        os.write(master, b"y\n")
        second = read_until(master, b"/n/d] ")
        assert b"\n? Create two.txt" in second
        os.write(master, b"y\n")
        shown = read_rest(master)
        process.wait(PATIENCE_S)
    assert process.returncode == 0
    assert shown.endswith(b"done\r\n")


def test_ctrl_c_on_the_terminal_while_a_question_waits(script: Script) -> None:
    with on_terminal("run", "--model", script(EDIT), "write it") as (process, master):
        read_until(master, b"/n/d] ")
        os.write(master, b"\x03")
        read_rest(master)
        process.wait(PATIENCE_S)
    assert process.returncode == 130
    assert not Path("new.txt").exists()


def test_what_the_model_says_cannot_steer_the_terminal(script: Script) -> None:  # D5-2
    model = script('  - say: "\\x1b]0;pwn\\x07\\x1b[2Jhi"\n')
    with on_terminal("run", "--model", model, "go") as (process, master):
        shown = read_rest(master)
        process.wait(PATIENCE_S)
    assert b"\x1b]" not in shown
    assert b"\x1b[2J" not in shown
    assert b"hi" in shown
