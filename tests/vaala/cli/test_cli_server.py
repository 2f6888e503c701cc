"""The commands that use the server: what lives there, what waits there, its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.cli.processes import started

Script = Callable[[str], str]
Vaala = Callable[..., Any]

EDIT = """
  - call: {tool: write_file, arguments: {path: new.txt, content: made}, as: edit}
  - say: done
"""
ASK = """
  - call: {tool: ask_user, arguments: {question: "Which colour?", choices: [red, green]}, as: said}
  - say: "{{ results.said }}"
"""
PATIENCE_S = 20.0


def _inbox(vaala: Vaala) -> Any:
    until = time.monotonic() + PATIENCE_S
    while not (pending := vaala("inbox", "--json").lines):
        assert time.monotonic() < until, "nothing came to the inbox"
    return pending[0]


def _detached(vaala: Vaala, model: str, *options: str) -> str:
    done = vaala("run", "--detach", "--model", model, *options, "go")
    assert done.code == 0, done.err
    return str(done.out.strip())


@pytest.mark.parametrize("words", [["status"], ["inbox"], ["stop"], ["list"], ["search", "x"]])
def test_a_mere_look_starts_no_server(vaala: Vaala, isolated: Path, words: list[str]) -> None:
    assert vaala(*words).code == 0
    assert not (isolated / ".local/state/vaala/runtime-server.yaml").exists()


def test_status_is_a_tree_of_what_lives_and_waits(vaala: Vaala, script: Script) -> None:
    conversation_id = _detached(vaala, script(EDIT))
    _inbox(vaala)
    lines = vaala("status").out.splitlines()
    assert lines[0].startswith("server ")
    assert lines[1].startswith(f"  {conversation_id[:13]}  [waitingApproval] go")
    assert lines[2].startswith("    default: turn for ")
    assert lines[3].startswith("      waits for ")
    assert vaala("status", "--json").lines[0]["conversations"][0]["id"] == conversation_id


def test_each_command_tells_that_the_newest_configuration_is_not_in_force(
    vaala: Vaala, script: Script, isolated: Path
) -> None:
    model = script("  - say: done\n")
    assert vaala("run", "--model", model, "go").code == 0
    config = isolated / ".config/vaala"
    config.mkdir(parents=True, exist_ok=True)
    (config / "models.yaml").write_text("# one line\ndefault: [1]\n")
    for words in (["run", "--model", model, "go"], ["list"], ["run", "--model", model, "go"]):
        done = vaala(*words)
        assert done.code == 0
        assert done.err.count(f"{config}/models.yaml:2: default: ") == 1
        assert "stays in force" not in done.out
    (config / "models.yaml").write_text("# none\n")
    assert "stays in force" not in vaala("run", "--model", model, "go").err


def test_an_approval_in_the_inbox_is_answered(vaala: Vaala, script: Script) -> None:
    conversation_id = _detached(vaala, script(EDIT))
    decision = _inbox(vaala)["decision"]["id"]
    assert "Create new.txt (allow, allow-session" in vaala("inbox").out
    assert vaala("answer", decision, "x").code == 2
    assert vaala("approve", decision, "--option", "maybe").code == 2
    assert vaala("approve", decision[:13]).code == 0
    waited = vaala("wait", conversation_id)
    assert (waited.code, waited.out) == (0, "done\n")
    assert Path("new.txt").read_text() == "made"
    assert vaala("inbox").out == "nothing waits for you\n"


def test_a_call_is_rejected_from_the_inbox_with_a_reason(vaala: Vaala, script: Script) -> None:
    conversation_id = _detached(vaala, script(EDIT))
    assert (
        vaala("approve", _inbox(vaala)["decision"]["id"], "--reject", "--reason", "no!").code == 0
    )
    assert vaala("wait", conversation_id).code == 0
    assert not Path("new.txt").exists()
    assert "reject by vaala inbox: no!" in vaala("show", conversation_id).out


@pytest.mark.parametrize(
    ("typed", "meant", "told"),
    [
        ("red", "red", "answered: red\n"),
        ("2", "green", "answered: green\n"),
        ("7", "7", "answered: 7 (as words: the choices are 1 to 2)\n"),
    ],
)
def test_a_question_in_the_inbox_is_answered(
    vaala: Vaala, script: Script, typed: str, meant: str, told: str
) -> None:
    conversation_id = _detached(vaala, script(ASK))
    decision = _inbox(vaala)["decision"]["id"]
    assert vaala("approve", decision).code == 2
    assert vaala("answer", decision, typed, "--none").code == 2
    answered = vaala("answer", decision, typed)
    assert (answered.code, answered.err) == (0, told)
    assert meant in vaala("wait", conversation_id).out


def test_send_and_wait(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "1: {{ prompt }}"\n  - say: "2: {{ prompt }}"\n')
    conversation_id = _detached(vaala, model)
    assert vaala("wait", conversation_id).out == "1: go\n"
    assert vaala("send", conversation_id[:13], "and", "more").code == 0
    assert vaala("wait", conversation_id).out == "2: and more\n"


def test_watch_shows_what_is_said(script: Script, vaala: Vaala) -> None:
    model = script('  - say: "1: {{ prompt }}"\n  - say: "2: {{ prompt }}"\n')
    conversation_id = _detached(vaala, model)
    vaala("wait", conversation_id)
    with started("watch", conversation_id) as watching:
        assert watching.stdout is not None
        until = time.monotonic() + PATIENCE_S
        while vaala("status", "--json").lines[0]["conversations"][0]["subscribers"] == 0:
            assert time.monotonic() < until, "nobody watches"
        vaala("send", conversation_id, "more")
        assert watching.stdout.readline() == b"2: more\n"
        watching.terminate()
        assert watching.wait(PATIENCE_S) == 143


def test_watch_repeats_nothing_when_the_server_was_killed(vaala: Vaala, script: Script) -> None:
    model = script("".join(f'  - say: "{n}: {{{{ prompt }}}}"\n' for n in (1, 2, 3)))
    conversation_id = _detached(vaala, model)
    vaala("wait", conversation_id)
    with started("watch", conversation_id) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        server = _watched(vaala)["server"]["pid"]
        vaala("send", conversation_id, "two")
        assert watching.stdout.readline() == b"2: two\n"
        vaala("wait", conversation_id)
        os.kill(server, signal.SIGKILL)
        lost, found = watching.stderr.readline(), watching.stderr.readline()
        assert lost.startswith(b"vaala: the connection to the server is lost: ")
        assert found.startswith(b"vaala: connected again (server process ")
        _watched(vaala)
        vaala("send", conversation_id, "three")
        assert watching.stdout.readline() == b"\n"
        assert watching.stdout.readline() == b"3: three\n"


def _watched(vaala: Vaala) -> Any:
    """Wait until somebody watches the only conversation; return the status."""
    until = time.monotonic() + PATIENCE_S
    while not any(one["subscribers"] for one in _status(vaala).get("conversations", ())):
        assert time.monotonic() < until, "nobody watches"
    return _status(vaala)


def _status(vaala: Vaala) -> Any:
    return vaala("status", "--json").lines[0] or {}


def test_an_index_that_cannot_be_opened_stops_lists_alone(
    vaala: Vaala, script: Script, isolated: Path
) -> None:
    (isolated / ".local/share/vaala/metadata.db").mkdir(parents=True)
    conversation_id = _detached(vaala, script("  - say: one\n  - say: two\n"))
    assert vaala("wait", conversation_id).out == "one\n"
    assert vaala("run", "--conversation", conversation_id, "more").out == "two\n"
    for words in (["list"], ["search", "one"]):
        refused = vaala(*words)
        assert (refused.code, "the index is unavailable" in refused.err) == (4, True)


def test_wait_ends_as_run_does(vaala: Vaala, script: Script) -> None:
    model = script("""
  - call: {tool: write_file, arguments: {path: new.txt, content: made}}
  - say: I may not.
""")
    waited = vaala("wait", _detached(vaala, model, "--mode", "read-only"))
    assert (waited.code, waited.out) == (3, "I may not.\n")
    assert "vaala: refused: Create new.txt: " in waited.err


@pytest.mark.parametrize(
    ("option", "told"),
    [("--until-asked", "it waits for a person: vaala inbox"), ("--timeout=0.2", "is not idle")],
)
def test_wait_can_end_although_a_person_is_waited_for(
    vaala: Vaala, script: Script, option: str, told: str
) -> None:
    conversation_id = _detached(vaala, script(EDIT))
    waited = vaala("wait", conversation_id, option)
    assert (waited.code, told in waited.err) == (3, True)
    assert vaala("wait", conversation_id, "--timeout", "soon").code == 2


def test_watch_tells_that_the_conversation_is_gone(vaala: Vaala, script: Script) -> None:
    conversation_id = _detached(vaala, script("  - say: hi\n"))
    vaala("wait", conversation_id)
    with started("watch", conversation_id) as watching:
        until = time.monotonic() + PATIENCE_S
        while vaala("status", "--json").lines[0]["conversations"][0]["subscribers"] == 0:
            assert time.monotonic() < until, "nobody watches"
        assert vaala("delete", "--yes", conversation_id).code == 0
        _, told = watching.communicate(timeout=PATIENCE_S)
        assert (watching.returncode, f"{conversation_id}: deleted" in told.decode()) == (0, True)


def test_an_import_from_a_pipe_without_end_is_left_by_ctrl_c(isolated: Path) -> None:
    pipe = isolated / "pipe"
    os.mkfifo(pipe)
    with started("import", str(pipe)) as reading, pipe.open("wb"):  # waits for the reader
        reading.send_signal(signal.SIGINT)
        _, told = reading.communicate(timeout=PATIENCE_S)
        assert (reading.returncode, told) == (130, b"vaala: interrupted\n")


def test_compact_tells_what_it_saved(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "A long story, told in short."\n  - say: two\n')
    conversation_id = _detached(vaala, model)
    vaala("wait", conversation_id)
    done = vaala("compact", conversation_id)
    assert (done.code, done.out) == (0, "")
    assert "Compacted from about " in done.err
    again = vaala("compact", conversation_id)
    assert again.code == 2
    assert "there is nothing to compact" in again.err
    assert "or sees a summary" in vaala("show", conversation_id).out


def test_a_compaction_that_fails_changes_nothing(vaala: Vaala, script: Script) -> None:
    model = script('  - say: "  "\n')
    conversation_id = _detached(vaala, model)
    vaala("wait", conversation_id)
    done = vaala("compact", conversation_id)
    assert done.code == 1
    assert "Not compacted: the model wrote no summary" in done.err


def test_rename_archive_and_fork(vaala: Vaala, script: Script) -> None:
    conversation_id = _detached(vaala, script("  - say: hi\n"))
    vaala("wait", conversation_id)
    assert vaala("rename", conversation_id, "About", "apples").code == 0
    assert "About apples" in vaala("list").out
    forked = vaala("fork", conversation_id)
    copy = forked.out.strip()
    assert copy != conversation_id
    assert forked.err == f"go on with it: vaala run --conversation {copy} PROMPT\n"
    assert vaala("run", "--conversation", copy, "-m", "scripted", "more").code == 0
    assert vaala("archive", conversation_id).code == 0
    assert [row["id"] for row in vaala("list", "--json").lines] == [copy]
    assert vaala("archive", "--undo", conversation_id).code == 0
    assert len(vaala("list", "--json").lines) == 2


def test_stop_ends_the_server_and_only_an_idle_one_when_told_so(
    vaala: Vaala, script: Script
) -> None:
    _detached(vaala, script("  - say: x\n    hang: true\n"))
    assert vaala("stop", "--if-idle").code == 1
    assert vaala("stop").err.startswith("stopped the server (process ")
    assert vaala("stop").err == "no server runs\n"
    assert vaala("restart").out.startswith("the server runs (process ")


def test_a_look_after_an_upgrade_ends_the_old_server_and_starts_none(
    vaala: Vaala, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert vaala("run", "--model", "scripted", "hi").code == 0
    old = vaala("status", "--json").lines[0]["server"]["pid"]
    with monkeypatch.context() as patch:
        patch.setattr("vaala.client.connection.VERSION", "99.0")  # as a newer package has
        assert (vaala("list").code, vaala("status").out[:15]) == (0, "no server runs;")
    assert vaala("run", "--continue", "--model", "scripted", "more").code == 0
    assert vaala("status", "--json").lines[0]["server"]["pid"] != old


def test_delete_and_import_go_through_a_server_that_runs(vaala: Vaala, script: Script) -> None:
    conversation_id = _detached(vaala, script("  - say: hi\n"))
    vaala("wait", conversation_id)
    assert vaala("export", conversation_id, "a.tar.gz").code == 0
    assert vaala("delete", "--yes", conversation_id).code == 0
    assert len(vaala("import", "a.tar.gz").out) == 37
    assert len(vaala("import", "-", stdin=Path("a.tar.gz").read_bytes()).out) == 37
    reader, writer = os.pipe()
    os.write(writer, Path("a.tar.gz").read_bytes())
    os.close(writer)
    assert len(vaala("import", f"/dev/fd/{reader}").out) == 37
    os.close(reader)
    Path("bad.tar.gz").write_text("no archive")
    assert vaala("import", "bad.tar.gz").code == 2
    assert "vaala stop" in vaala("reindex").err


def test_attach_needs_a_terminal(vaala: Vaala) -> None:
    done = vaala("attach", "0123")
    assert (done.code, "use vaala watch" in done.err) == (2, True)


def test_the_server_path_imports_no_runtime(script: Script) -> None:
    code = (
        "import sys\nfrom vaala.cli.program import main\n"
        f"assert main(['run', '--model', {script('  - say: hi')!r}, 'x']) == 0\n"
        "print(*sorted(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    imported = set(done.stdout.split())
    heavy = {"pydantic", "httpx", "apsw", "ruamel", "asyncio"}
    ours = {"vaala.runtime", "vaala.handle", "vaala.dao", "vaala.config", "vaala.server"}
    assert imported & (heavy | ours) == set()
    assert "vaala.client.client" in imported
