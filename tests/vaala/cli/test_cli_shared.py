"""`vaala run` over the server, as processes: one server for all, and what each shell has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.vaala.cli.processes import PATIENCE_S, PROGRAM, is_alive, read_until, started, wait_for
from vaala.testing import chat_server
from vaala.testing.provider_chat import call, text, tool_calls

Script = Callable[[str], str]
HANG = "  - say: Thinking.\n    hang: true\n"
ECHO = '  - say: "You said {{ prompt }}"\n'
BARE = ("HOME", "PYTHONPATH")


def _call(*words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *words], capture_output=True, check=False, stdin=subprocess.DEVNULL,
        timeout=PATIENCE_S,
    )  # fmt: skip


def _status() -> Any:
    return json.loads(_call("status", "--json").stdout)


def _serving(data: Path) -> list[int]:
    """Return the processes that serve a data directory."""
    shown = subprocess.run(["ps", "-A", "-ww", "-o", "pid=,args="], capture_output=True, check=True)
    lines = [line.split(None, 1) for line in shown.stdout.decode().splitlines()]
    return [int(pid) for pid, words in lines if " serve " in words and str(data) in words]


def test_six_runs_at_once_with_no_server_start_one_and_all_are_answered(
    script: Script, isolated: Path
) -> None:  # G2-5
    model = script(ECHO)
    numbers = [str(number) for number in range(6)]
    with ExitStack() as stack:
        runs = [stack.enter_context(started("run", "-m", model, number)) for number in numbers]
        outputs = [run.communicate(timeout=PATIENCE_S) for run in runs]
    assert [run.returncode for run in runs] == [0] * 6, outputs
    assert [out for out, _ in outputs] == [f"You said {n}\n".encode() for n in numbers]
    assert _serving(isolated / ".local/share/vaala") == [_status()["server"]["pid"]]


async def test_a_run_has_the_key_and_the_environment_of_its_own_shell(isolated: Path) -> None:
    """The server was started from a shell that has neither."""
    bare = {name: os.environ[name] for name in BARE if name in os.environ}
    await trio.run_process(
        [*PROGRAM, "restart"], env={**bare, "PATH": "/usr/bin:/bin"}, capture_stdout=True
    )
    scripts = isolated / "venv" / "bin"
    scripts.mkdir(parents=True)
    (scripts / "python").symlink_to(sys.executable)
    async with chat_server() as provider:
        provider.reply(tool_calls(call("exec_command", command="which python")))
        provider.reply(text("It is that of the environment."))
        shell = {
            "OPENAI_BASE_URL": provider.base_url,
            "OPENAI_API_KEY": "sk-of-the-second-shell",
            "VIRTUAL_ENV": str(scripts.parent),
            "PATH": f"{scripts}:{os.environ['PATH']}",
        }
        done = await trio.run_process(
            [*PROGRAM, "run", "-m", "openai/m", "--mode", "full", "which python is it?"],
            env={**os.environ, **shell}, capture_stdout=True, capture_stderr=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, b"It is that of the environment.\n")
        keys = {request.headers["authorization"] for request in provider.requests}
        assert keys == {"Bearer sk-of-the-second-shell"}
        assert f"{scripts}/python" in provider.requests[1].body.decode()


def test_ctrl_c_interrupts_the_turn_and_the_server_lives(script: Script) -> None:
    with started("run", "-m", script(HANG), "go") as run:
        assert run.stdout is not None
        read_until(run.stdout.fileno(), b"Thinking.")
        server = _status()["server"]["pid"]
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 130
    assert b"interrupting; Ctrl-C again to quit at once" in err
    status = _status()
    assert status["server"]["pid"] == server
    (session,) = status["conversations"][0]["sessions"]
    assert "turnId" not in session
    again = _call("run", "--continue", "-m", script(ECHO), "more")
    assert (again.returncode, again.stdout) == (0, b"You said more\n")


def test_a_second_ctrl_c_leaves_at_once_and_the_server_lives(script: Script) -> None:
    """The command ignores TERM, so that the first Ctrl-C has not ended before the second."""
    command = "trap '' TERM; echo $$ > pid; while :; do sleep 1; done"
    model = script(f'  - call: {{tool: exec_command, arguments: {{command: "{command}"}}}}\n')
    with started("run", "-m", model, "--mode", "full", "go") as run:
        assert run.stderr is not None
        wait_for(Path("pid"))
        run.send_signal(signal.SIGINT)
        read_until(run.stderr.fileno(), b"interrupting")
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 130
    conversation_id = _status()["conversations"][0]["id"]
    way_on = f"vaala run --conversation {conversation_id} PROMPT"
    assert f"vaala: the server ends its turn; go on with it: {way_on}\n".encode() in err
    assert b"it goes on" not in err
    assert _call("wait", conversation_id).returncode == 130
    assert not is_alive(int(Path("pid").read_text()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_leaves_its_turn_running(script: Script, number: int) -> None:
    with started("run", "-m", script(HANG), "go") as run:
        assert run.stdout is not None
        read_until(run.stdout.fileno(), b"Thinking.")
        run.send_signal(number)
        _, err = run.communicate(timeout=PATIENCE_S)
    assert run.returncode == 128 + number
    assert b"it goes on in the server: vaala attach " in err
    assert b"Traceback" not in err
    assert _status()["conversations"][0]["status"] == "running"


@pytest.mark.parametrize("left", ["", "pid: 1\n", None])
def test_what_a_killed_server_leaves_holds_nothing_up(
    script: Script, isolated: Path, left: str | None
) -> None:  # G2-1, G2-2
    """Its record stays (None), with a pid that another program has, or was cut short."""
    model = script(ECHO)
    assert _call("run", "-m", model, "one").returncode == 0
    first = _status()["server"]["pid"]
    os.kill(first, signal.SIGKILL)
    record = isolated / ".local/state/vaala/runtime-server.yaml"
    if left is None:
        record.write_text(record.read_text().replace(str(first), str(os.getpid())))
    else:
        record.write_text(left)
    assert (isolated / ".local/share/vaala/runtime.lock").exists()
    again = _call("run", "--continue", "-m", model, "two")
    assert (again.returncode, again.stdout) == (0, b"You said two\n")
    assert _status()["server"]["pid"] not in (first, os.getpid())


WATCH = """
import sys
import time
def watch(event, arguments):
    if event == "socket.getaddrinfo":
        host = arguments[0]
    elif event == "socket.connect" and isinstance(arguments[1], tuple):
        host = arguments[1][0]
    else:
        return
    if host not in ("127.0.0.1", "::1", "localhost"):
        with open({file!r}, "a") as told:
            print(event, host, file=told)
sys.addaudithook(watch)
"""


@pytest.mark.parametrize("way", [[], ["--in-process"]])
def test_nothing_asks_a_network_at_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: list[str]
) -> None:  # J5-2
    """Every interpreter watches what it connects to, that of the server too."""
    told = tmp_path / "told"
    (tmp_path / "sitecustomize.py").write_text(WATCH.format(file=str(told)))
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    reach = "import socket; socket.socket(type=socket.SOCK_DGRAM).connect(('192.0.2.1', 9))"
    subprocess.run([sys.executable, "-c", reach], check=False, capture_output=True)
    assert told.read_text() == "socket.connect 192.0.2.1\n"
    told.unlink()
    assert _call("run", *way, "-m", "scripted", "hi").returncode == 0
    assert _call("list").returncode == 0
    assert not told.exists()


EDIT_THEN_ECHO = """
  - call: {tool: write_file, arguments: {path: new.txt, content: made}, as: edit}
  - say: done
  - say: "You said {{ prompt }}"
"""


def test_a_run_leaves_the_turn_of_another_alone(script: Script) -> None:
    """Neither does it answer what waits there, nor does its Ctrl-C end it."""
    model = script(EDIT_THEN_ECHO)
    conversation_id = _call("run", "-d", "-m", model, "edit").stdout.decode().strip()
    with started("run", "--conversation", conversation_id, "second") as second:
        until = time.monotonic() + PATIENCE_S
        while (session := _status()["conversations"][0]["sessions"][0]).get("queued", 0) == 0:
            assert time.monotonic() < until, session
        second.send_signal(signal.SIGINT)
        _, told = second.communicate(timeout=PATIENCE_S)
    assert second.returncode == 130, told
    session = _status()["conversations"][0]["sessions"][0]
    assert ("queued" in session, "turnId" in session) == (False, True)
    (waits,) = _call("inbox", "--json").stdout.splitlines()
    decision = json.loads(waits)["decision"]
    with started("run", "--conversation", conversation_id, "third") as third:
        assert _call("approve", decision["id"]).returncode == 0
        out, told = third.communicate(timeout=PATIENCE_S)
    assert (third.returncode, out) == (0, b"You said third\n"), told
