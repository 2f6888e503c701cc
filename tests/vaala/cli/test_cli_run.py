"""`vaala run` from end to end, on the scripted model with real tools and a real data directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Script = Callable[[str], str]
Vaala = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("way")

EDIT = """
  - call: {tool: write_file, arguments: {path: new.txt, content: "made\\n"}, as: edit}
  - say: "{{ results.edit | first_line }}"
"""

ASK = """
  - call: {tool: ask_user, arguments: {question: "Which colour?", choices: [red, green]}, as: said}
  - say: "{{ results.said }}"
"""


def test_stdout_has_exactly_the_answer_and_stderr_the_rest(vaala: Vaala, script: Script) -> None:
    Path("notes.txt").write_text("one\n")
    model = script(
        "  - say: I look.\n"
        "    call: {tool: read_file, arguments: {path: notes.txt}, as: notes}\n"
        '  - say: "ä: {{ results.notes | lines }} lines"\n'
    )
    done = vaala("run", "--model", model, "count", "the", "lines")
    assert (done.code, done.out) == (0, "I look.\n\nä: 1 lines\n")
    assert done.err == f"model {model}: --model\n> Read notes.txt\n"


def test_the_prompt_comes_from_stdin(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "You said: {{ prompt }}"\n')
    assert vaala("run", "--model", model, stdin=b"hello\n").out == "You said: hello\n"
    assert vaala("run", "--model", model, "-", stdin=b"x").out == "You said: x\n"


def test_several_prompts_are_turns_of_one_conversation(vaala: Vaala, script: Script) -> None:
    Path("prompts").write_text("first\nsecond\n")
    model = script('  - say: "1: {{ prompt }}"\n  - say: "2: {{ prompt }}"\n')
    done = vaala("run", "--model", model, "--prompts", "prompts")
    assert (done.code, done.out) == (0, "1: first\n\n2: second\n")
    assert len(vaala("list", "--json").lines) == 1


def test_a_prompt_that_fails_ends_the_run(vaala: Vaala, script: Script) -> None:
    Path("prompts").write_text("first\nsecond\nthird\n")
    model = script(
        "  - say: fine\n  - fail: {kind: auth, message: the key is wrong}\n  - say: never\n"
    )
    done = vaala("run", "--model", model, "--prompts", "prompts")
    assert (done.code, done.out) == (1, "fine\n")
    assert "the key is wrong" in done.err


def test_continue_goes_on_with_the_newest_conversation_here(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "1: {{ prompt }}"\n  - say: "2: {{ prompt }}"\n')
    vaala("run", "--model", model, "first")
    done = vaala("run", "--continue", "second")
    assert (done.code, done.out) == (0, "2: second\n")
    assert done.err == f"model {model}: this conversation\n"


def test_continue_in_another_directory_finds_nothing(
    vaala: Vaala, script: Script, tmp_path: Path
) -> None:
    vaala("run", "--model", script("  - say: x\n"), "first")
    done = vaala("run", "--continue", "--cwd", str(tmp_path), "second")
    assert done.code == 2
    assert f"no conversation in {tmp_path} yet" in done.err


def test_a_conversation_is_named_by_the_beginning_of_its_id(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "1: {{ prompt }}"\n  - say: "2: {{ prompt }}"\n')
    vaala("run", "--model", model, "first")
    (row,) = vaala("list", "--json").lines
    assert vaala("run", "--conversation", row["id"][:13], "x").out == "2: x\n"


def test_what_needs_approval_is_rejected_when_nobody_can_be_asked(
    vaala: Vaala, script: Script
) -> None:  # J4-3
    done = vaala("run", "--model", script(EDIT), "write it")
    assert done.code == 3
    assert "rejected, since nobody could be asked: Create new.txt" in done.err
    ways = "--allow 'write_file(new.txt)' or --mode auto-edit or --mode full"
    assert f"Create new.txt (needs {ways})" in done.err
    assert not Path("new.txt").exists()


def test_a_question_goes_without_an_answer_when_nobody_can_be_asked(
    vaala: Vaala, script: Script
) -> None:  # J4-3
    done = vaala("run", "--model", script(ASK), "paint it")
    assert done.code == 0
    assert "the agent asked, and there was nobody to answer: Which colour?" in done.err
    assert "does not want to answer" in done.out


@pytest.mark.parametrize(
    "options",
    [
        ["--mode", "full"],
        ["--mode", "auto-edit"],
        ["--allow", "write_file"],
        ["--allow", "write_file(new.txt)"],
    ],
)
def test_a_mode_or_a_rule_allows_it(vaala: Vaala, script: Script, options: list[str]) -> None:
    done = vaala("run", "--model", script(EDIT), *options, "write it")
    assert (done.code, Path("new.txt").read_text()) == (0, "made\n")


def test_a_command_that_was_rejected_can_be_allowed_by_pasting(
    vaala: Vaala, script: Script
) -> None:
    steps = "  - call: {tool: exec_command, arguments: {command: echo hey}}\n  - say: end\n"
    done = vaala("run", "--model", script(steps), "go")
    assert done.code == 3
    assert done.err.endswith("(needs --allow 'exec_command(echo hey)' or --mode full)\n")


def test_an_answer_that_broke_off_is_not_shown_twice(vaala: Vaala, script: Script) -> None:
    cut = "{kind: network, message: gone, retryable: true, times: 1}"
    done = vaala("run", "-m", script(f"  - {{say: One two., cut: {cut}}}\n"), "go")
    assert (done.code, done.out) == (0, "One two.\n")
    assert "gone; again in" in done.err


def test_an_answer_without_text_says_so(vaala: Vaala, script: Script) -> None:
    done = vaala("run", "--model", script('  - say: ""\n'), "go")
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("\nvaala: The model said nothing.\n")


def test_a_mode_that_only_reads_denies_without_asking(vaala: Vaala, script: Script) -> None:
    done = vaala("run", "--model", script(EDIT), "--mode", "read-only", "write it")
    assert done.code == 3
    assert "vaala: refused: Create new.txt: write_file(new.txt) is not allowed" in done.err
    assert "--allow 'write_file(new.txt)'" in done.err
    assert not Path("new.txt").exists()


@pytest.mark.parametrize(
    ("steps", "code", "complaint"),
    [
        ("  - fail: {kind: auth, message: bad key}\n", 1, "bad key"),
        ("  - fail: {kind: network, message: no route, retryable: false}\n", 4, "no route"),
        ("  - {say: no, finish: refusal}\n", 3, ""),
        ("  - {say: cut, finish: length}\n", 3, ""),
    ],
)
def test_the_exit_code_tells_how_it_ended(
    vaala: Vaala, script: Script, steps: str, code: int, complaint: str
) -> None:
    done = vaala("run", "--model", script(steps), "go")
    assert done.code == code
    assert "\nvaala: " in done.err
    assert complaint in done.err


def test_the_word_error_on_stderr_is_no_failure(vaala: Vaala, script: Script) -> None:  # J4-4
    steps = '  - call: {tool: exec_command, arguments: {command: "echo ERROR >&2"}}\n  - say: ok\n'
    done = vaala("run", "--model", script(steps), "--mode", "full", "log an ERROR")
    assert (done.code, done.out, "ERROR" in done.err) == (0, "ok\n", True)


def test_a_limit_of_the_agent_is_exit_code_3(vaala: Vaala, script: Script, isolated: Path) -> None:
    _configure(isolated, agents="brief: {budgets: {steps_max: 1}}")
    steps = "  - call: {tool: list_dir, arguments: {path: .}}\n  - say: never\n"
    done = vaala("run", "--model", script(steps), "--agent", "brief", "go")
    assert (done.code, done.out) == (3, "")


def test_a_command_of_the_agent_does_not_see_the_keys(
    vaala: Vaala, script: Script, isolated: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of this environment a server takes what `vaala.discovery.environment` names."""
    _configure(isolated, providers="p: {base_url: 'http://x/v1', api_key_env: OWN_KEY}")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "OWN_KEY"):
        monkeypatch.setenv(name, "sk-very-secret")
    monkeypatch.setenv("VIRTUAL_ENV", "seen")
    model = script(
        "  - call: {tool: exec_command, arguments: {command: env}, as: env}\n"
        '  - say: "{{ results.env }}"\n'
    )
    done = vaala("run", "--model", model, "--mode", "full", "go")
    assert "VIRTUAL_ENV=seen" in done.out
    assert "sk-very-secret" not in done.out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--cwd", "absent", "x"], "--cwd absent: no such directory"),
        (["--agent", "nobody", "x"], "no agent 'nobody'; there are: default"),
        (["--model", "scripted:absent.yaml", "x"], "absent.yaml"),
        (["--model", "nowhere/m", "x"], "nowhere/m"),
        (["--allow", "()", "x"], "not a permission rule: '()'"),
        (["--allow", "write_fil", "x"], "no tool is called 'write_fil' (did you mean write_file?)"),
        (["--allow", "bogus(x)", "x"], "--allow bogus(x): no tool is called 'bogus'; there are"),
        (["--mode", "fast", "x"], "--mode: invalid choice: 'fast'"),
        (["--conversation", "0123", "x"], "no conversation '0123'; see `vaala list`"),
        (["--conversation", "zz", "x"], "'zz' is no id of a conversation"),
        (["--continue", "--conversation", "01", "x"], "not both"),
        (["--continue", "--agent", "default", "x"], "--agent is for a new conversation"),
        (["--modl", "m", "x"], "unknown option --modl (did you mean --model?)"),
        ([], "the prompt is empty"),
    ],
)
def test_wrong_usage_is_one_line_that_names_the_input(
    vaala: Vaala, words: list[str], complaint: str
) -> None:
    done = vaala("run", *words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("vaala: ")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_a_wrong_configuration_names_file_and_line(vaala: Vaala, isolated: Path) -> None:
    _configure(isolated, agents="a:\n  mode: fulll\n")
    done = vaala("run", "--model", "scripted", "x")
    assert done.code == 2
    assert "agents.yaml:2: a.mode: expected one of" in done.err


def test_a_tool_that_is_not_there_names_file_and_line(vaala: Vaala, isolated: Path) -> None:
    _configure(isolated, agents="a:\n  tools:\n    - list_dir\n    - read_fil\n")
    done = vaala("run", "--model", "scripted", "x")
    assert done.code == 2
    assert (
        "agents.yaml:4: a.tools.1: no tool is called 'read_fil'; did you mean 'read_file'?"
        in done.err
    )


def test_a_provider_whose_key_is_not_set_says_so(vaala: Vaala, isolated: Path) -> None:
    _configure(
        isolated,
        providers="p: {base_url: 'http://127.0.0.1:1/v1', api_key_env: OWN_KEY}",
        models="default: p/m",
    )
    done = vaala("run", "x")
    assert done.code == 2
    assert "OWN_KEY is not set" in done.err


def _configure(home: Path, **files: str) -> None:
    directory = home / ".config" / "vaala"
    directory.mkdir(parents=True)
    for name, text in files.items():
        (directory / f"{name}.yaml").write_text(text)


def test_a_rule_goes_before_the_mode_that_only_reads(vaala: Vaala, script: Script) -> None:
    steps = (
        '  - call: {tool: write_file, arguments: {path: new.txt, content: "made\\n"}}\n'
        "  - call: {tool: exec_command, arguments: {command: touch x}}\n"
        "  - say: end\n"
    )
    options = ["--mode", "read-only", "--allow", "write_file(./new.txt)"]
    done = vaala("run", "--model", script(steps), *options, "write it")
    assert (done.code, Path("new.txt").read_text()) == (3, "made\n")
    assert not Path("x").exists()


@pytest.mark.parametrize("way", ["server"])
def test_a_rule_of_one_run_is_answered_for_each_call_and_remembered_nowhere(
    vaala: Vaala, script: Script, way: str
) -> None:
    vaala("run", "--model", script(EDIT), "--allow", "write_file", "write it")
    (row,) = vaala("list", "--json").lines
    (approval,) = [
        item for item in vaala("show", row["id"], "--json").lines if item["kind"] == "approval"
    ]
    assert approval["answer"]["option"] == "allow"
    assert approval["answer"]["reason"] == "--allow write_file"


@pytest.mark.parametrize("way", ["server"])
def test_what_is_detached_goes_on_in_the_server(vaala: Vaala, script: Script, way: str) -> None:
    model = script('  - say: "You said: {{ prompt }}"\n')
    done = vaala("run", "--detach", "--model", model, "hello")
    assert (done.code, len(done.out)) == (0, 37)
    waited = vaala("wait", done.out.strip())
    assert (waited.code, waited.out) == (0, "You said: hello\n")


def test_a_detached_run_needs_a_server_that_can_decide(vaala: Vaala) -> None:
    done = vaala("run", "--detach", "--allow", "write_file", "x")
    assert (done.code, "leave out --detach" in done.err) == (2, True)
