"""`vaala serve` as a process: signals, kills, limits of the system, what its starter is told."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.executors.running import alive, gone
from tests.vaala.server.transport.doors import ask_on
from tests.vaala.server.transport.served import PROGRAM, Program, Talk, program, talk
from vaala.discovery import NoRecord, ServerRecord, bearer, place_of, read_record
from vaala.server.transport.listening import listen

# Says something, starts a command that would run for an hour, and then talks without end.
BUSY = """steps:
  - say: Thinking aloud.
    call: {tool: exec_command, arguments: {command: "echo $$ > pid; mv pid began; exec sleep 3600"}}
  - say: More.
    hang: true
"""


def model(tmp_path: Path, steps: str) -> str:
    script = tmp_path / "script.yaml"
    script.write_bytes(steps.encode())
    return f"scripted:{script}"


async def busy_conversation(client: Talk, tmp_path: Path) -> str:
    """Begin a turn that runs a command; return the conversation's id when the command runs."""
    made = await client.ask(
        "conversation/create", directory=str(tmp_path), clientId="c1",
        settings={"model": model(tmp_path, BUSY), "mode": "full"},
    )  # fmt: skip
    await client.ask("conversation/subscribe", conversationId=made["id"])
    await client.say(made["id"], "go")
    await appears(tmp_path, "began")
    return str(made["id"])


async def appears(directory: Path, name: str) -> None:
    with trio.fail_after(60):
        while name not in os.listdir(directory):
            await trio.testing.wait_all_tasks_blocked(0.02)


def pid_of_command(tmp_path: Path) -> int:
    return int((tmp_path / "began").read_bytes())


def shown_of(pid: int) -> bytes:
    """Return what others see of a process: its words and its variables."""
    return Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()


def needs(run: Program) -> ServerRecord:
    assert run.report["type"] == "ready", run.report
    assert run.record is not None
    return run.record


async def test_its_starter_is_told_in_one_line(tmp_path: Path) -> None:
    async with program(tmp_path) as run:
        record = needs(run)
        assert run.report == {"type": "ready", "pid": run.process.pid, "instance": record.instance}
        async with talk(record) as client:
            status = await client.ask("runtime/status")
        assert status["server"]["autoStarted"] is True


async def test_its_starter_is_told_who_has_the_data(tmp_path: Path) -> None:  # G2-3
    async with program(tmp_path) as first, program(tmp_path) as second:
        assert second.report["type"] == "failed"
        assert second.report["locked"] is True
        assert f"process {first.process.pid}" in second.report["message"]
        assert str(tmp_path) in second.report["message"]
        assert second.wait() == 4


async def test_its_starter_is_told_why_it_cannot_listen(tmp_path: Path) -> None:  # G2-4
    async with listen(["127.0.0.1"], 0) as stranger:
        port = stranger.addresses[0][1]
        async with program(tmp_path, "--port", str(port)) as run:
            assert run.report["type"] == "failed"
            assert f"port {port} is in use" in run.report["message"]
            assert run.wait() == 4


@pytest.mark.parametrize(
    ("option", "value", "wrong"),
    [
        ("--port", "many", "whole number"),
        ("--port", "65536", "up to 65535"),
        ("--host", "example.org", "numeric address"),
        ("--idle-exit", "-1", "minutes"),
        ("--idle-exit", "nan", "minutes"),
        ("--ready-fd", "999", "--ready-fd 999"),
    ],
)
def test_what_is_wrong_with_an_option_is_told(option: str, value: str, wrong: str) -> None:
    done = subprocess.run(
        [*PROGRAM, "serve", option, value], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert wrong in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT", "SIGHUP"])
async def test_a_signal_ends_it_in_order(name: str, tmp_path: Path) -> None:
    async with program(tmp_path, "--port", "0") as run:
        needs(run)
        run.process.send_signal(signal.Signals[name])
        assert run.wait() == 0
        assert isinstance(read_record(place_of(tmp_path, os.environ).record, tmp_path), NoRecord)


async def test_a_server_whose_data_was_moved_ends(tmp_path: Path) -> None:
    """Else the next one would own the same path, and both would write there."""
    data = tmp_path / "data"
    async with program(data) as run:
        needs(run)
        data.rename(tmp_path / "elsewhere")
        assert run.wait() == 0
        async with program(data) as other:
            needs(other)
            assert run.process.pid != other.process.pid


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_the_end_of_a_server_at_work(tmp_path: Path) -> None:  # H9-1
    data = tmp_path / "data"
    async with program(data) as run, talk(needs(run)) as client:
        conversation = await busy_conversation(client, tmp_path)
        command = pid_of_command(tmp_path)
        assert alive(command)
        began = trio.current_time()
        run.process.terminate()
        assert run.wait() == 0
        assert trio.current_time() - began < 5
    await gone(command)
    async with program(data) as run, talk(needs(run)) as client:
        seen = await client.ask("conversation/subscribe", conversationId=conversation)
        shown = json.dumps(seen["snapshot"])
        assert "Thinking aloud." in shown
        assert '"interruptedBy": "shutdown"' in shown


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_a_server_that_was_killed_can_be_started_again_at_once(
    tmp_path: Path,
) -> None:  # G2-1, H9-2
    data, path = tmp_path / "data", tmp_path / "s"
    async with program(data, "--socket", str(path)) as run:
        old = needs(run)
        async with talk(old) as client:
            conversation = await busy_conversation(client, tmp_path)
            command = pid_of_command(tmp_path)
            assert alive(command)
            run.process.kill()
            run.wait()
    await gone(command)
    async with program(data, "--socket", str(path)) as run, talk(needs(run)) as client:
        assert run.record is not None
        assert run.record.token != old.token
        listed = await client.ask("conversation/list")
        assert [row["info"]["id"] for row in listed["rows"]] == [conversation]
        assert "running" not in json.dumps(listed)
        await client.ask("conversation/subscribe", conversationId=conversation)
        await client.ask(
            "session/configure", conversationId=conversation,
            settings={"model": model(tmp_path, "steps:\n  - say: Back again.\n")},
        )  # fmt: skip
        await client.say(conversation, "are you there?")
        await client.ask("session/resume", conversationId=conversation)
        await client.until("Back again.")


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    # The command does not want to end, which gives it some seconds.
    steps = """steps:
  - call: {tool: exec_command, arguments: {command: "trap '' TERM INT; echo x > began; sleep 60"}}
"""
    data = tmp_path / "data"
    async with program(data) as run, talk(needs(run)) as client:
        made = await client.ask(
            "conversation/create", directory=str(tmp_path), clientId="c1",
            settings={"model": model(tmp_path, steps), "mode": "full"},
        )  # fmt: skip
        await client.ask("conversation/subscribe", conversationId=made["id"])
        await client.say(made["id"], "go")
        await appears(tmp_path, "began")
        run.process.terminate()
        with trio.fail_after(30):  # the record goes first
            while "runtime-server.yaml" in os.listdir(data):
                await trio.testing.wait_all_tasks_blocked(0.01)
        run.process.terminate()
        assert run.wait() in (-signal.SIGTERM, 0)


async def test_it_lives_with_few_descriptors(tmp_path: Path) -> None:  # H6-4
    few = ["sh", "-c", 'ulimit -n 128; exec "$@"', "sh"]
    async with program(tmp_path, prefix=few) as run:
        record = needs(run)
        port = record.port
        assert port is not None
        async with talk(record) as client:
            held = [await trio.open_tcp_stream("127.0.0.1", port) for _ in range(200)]
            assert (await client.ask("runtime/status"))["clients"] == 1
            async with talk(record) as another:
                assert (await another.ask("runtime/status"))["clients"] == 2
            for stream in held:
                await stream.aclose()
            assert await client.ask("conversation/list") == {"rows": []}


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_nothing_it_writes_or_shows_has_the_token(tmp_path: Path) -> None:  # H7-3, H7-4
    async with program(tmp_path) as run:
        record = needs(run)
        assert record.port is not None
        async with await trio.open_tcp_stream("127.0.0.1", record.port) as stream:
            given = {"authorization": bearer(record.token)}
            target = f"/api/v1/models?token={record.token}"
            refused = await ask_on(stream, f"127.0.0.1:{record.port}", target, more=given)
            assert refused.status == 400
        async with talk(record) as client:
            await client.ask("runtime/status")
        assert record.token.encode() not in shown_of(run.process.pid)
        run.process.terminate()
        out, err = run.process.communicate(timeout=60)
        assert record.token.encode() not in out + err
        assert f"http://127.0.0.1:{record.port}".encode() in out
    log = Path(os.environ["XDG_STATE_HOME"]) / "vaala" / "vaala.log"
    written = log.read_bytes()
    assert b"a token in a URL" in written
    assert record.token.encode() not in written
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_a_process_whose_server_has_given_up_ends() -> None:
    """A thread that hangs would keep it for ever."""
    program = (
        "import trio\n"
        "from vaala.server.stopping import Stop, heed_signals\n"
        "stop = Stop()\n"
        "stop.ask('enough')\n"
        "stop.give_up()\n"
        "trio.run(heed_signals, stop)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], timeout=60, check=False)
    assert done.returncode == -signal.SIGTERM
