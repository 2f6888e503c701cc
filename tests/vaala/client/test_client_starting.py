"""Servers that clients start: as processes of their own, one for all, in place of what is stale."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.vaala.client.meeting import client_of
from vaala.client import CannotConnect, CannotStart, Client, connect
from vaala.client import limits as client_limits
from vaala.client.errors import NoAnswer
from vaala.client.finder import Discovery
from vaala.dao.opening import open_store
from vaala.discovery import (
    NoRecord,
    ServerRecord,
    limits,
    new_token,
    place_of,
    read_record,
    write_record,
)
from vaala_protocol.methods.runtime import ClientEnvironment
from vaala_protocol.settings import Settings
from vaala_protocol.state import Snapshot

SCRIPTED = Settings(model="scripted", mode="full")
HANGS = "steps:\n  - say: I begin.\n    hang: true\n"
PATIENCE_S = 90.0


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@asynccontextmanager
async def started(data: Path, **options: Any) -> AsyncGenerator[Client]:
    """A client, whose server is ended with the block."""
    with trio.fail_after(PATIENCE_S):
        async with connect(data, **options) as client:
            try:
                yield client
            finally:
                _kill(client.server.pid)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _record(data: Path, **fields: Any) -> ServerRecord:
    """Leave a record as a server that is gone would have."""
    values = {
        "token": new_token(), "pid": os.getpid(), "instance": "stale", "version": "0",
        "data_directory": str(data), "started_at": 1, "host": "127.0.0.1",
    }  # fmt: skip
    record = ServerRecord(**{**values, **fields})
    data.mkdir(exist_ok=True)
    write_record(place_of(data, os.environ).record, record)
    return record


async def test_ten_clients_at_once_get_one_server(data: Path) -> None:
    # G2-5
    servers: list[int] = []
    answers: list[str] = []

    async def use() -> None:
        async with connect(data) as client:
            servers.append(client.server.pid)
            talk = await client.create_conversation(directory=str(data), settings=SCRIPTED)
            answers.append((await talk.run("What is here?")).text)

    try:
        with trio.fail_after(PATIENCE_S):
            async with trio.open_nursery() as nursery:
                for _ in range(10):
                    nursery.start_soon(use)
        assert len(set(servers)) == 1
        assert len(answers) == 10
        assert len(set(answers)) == 1
        assert answers[0]
    finally:
        for pid in set(servers):
            _kill(pid)


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="reads /proc")
async def test_a_server_owes_nothing_to_the_shell_that_started_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {
        "OPENAI_API_KEY": "sk-1", "VIRTUAL_ENV": "/venv", "PATH": f"/venv/bin:{os.environ['PATH']}",
        "SSH_AUTH_SOCK": "/agent", "SOME_TOKEN": "s3cret", "LANG": "de_DE.UTF-8",
    }  # fmt: skip
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    async with started(data) as client:
        pid = client.server.pid
        proc = Path(f"/proc/{pid}")
        environ = dict(
            line.split("=", 1) for line in (proc / "environ").read_text().split("\0") if line
        )
        assert environ["HOME"] == os.environ["HOME"]
        assert {name for name in given if environ.get(name) == given[name]} == set()
        assert os.readlink(proc / "cwd") == "/"
        assert os.readlink(proc / "fd" / "0") == os.devnull
        assert os.getsid(pid) == pid
        assert client.server.auto_started


_SHOWS = """
steps:
  - call:
      - {tool: exec_command, arguments: {command: 'echo "[$PYTHONHOME|$PYTHONPATH]"'}, as: shown}
  - say: "{{ results.shown }}"
"""


async def test_what_the_server_s_interpreter_needs_is_not_for_the_commands_of_others(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "shows.yaml"
    script.write_text(_SHOWS)
    settings = Settings(model=f"scripted:{script}", mode="full")
    said: list[str] = []
    monkeypatch.setenv("PYTHONPATH", "/of/the/first")
    async with started(data):
        for given in (None, "/of/the/second"):
            if given is None:
                monkeypatch.delenv("PYTHONPATH")
            else:
                monkeypatch.setenv("PYTHONPATH", given)
            async with connect(data) as client:
                talk = await client.create_conversation(directory=str(tmp_path), settings=settings)
                said.append((await talk.run("go")).text)
        untold = ClientEnvironment(directory=str(tmp_path))
        async with connect(data, environment=untold) as client:
            talk = await client.create_conversation(directory=str(tmp_path), settings=settings)
            said.append((await talk.run("go")).text)
    shown = ("[|]", "[|/of/the/second]", "[|]")
    assert [one in text for one, text in zip(shown, said, strict=True)] == [True] * 3, said


_WRITES = """
steps:
  - call:
      - {tool: exec_command, arguments: {command: "echo hi > by_command"}}
      - {tool: write_file, arguments: {path: by_tool, content: hi}}
  - say: Done.
"""


async def test_what_agents_make_has_the_mode_that_the_user_wants(
    data: Path, tmp_path: Path
) -> None:
    script = tmp_path / "writes.yaml"
    script.write_text(_WRITES)
    before = os.umask(0o022)
    try:
        async with started(data) as client:
            talk = await client.create_conversation(
                directory=str(tmp_path),
                settings=Settings(model=f"scripted:{script}", mode="full"),
            )
            await talk.run("go")
    finally:
        os.umask(before)
    made = _modes(tmp_path)
    assert made[tmp_path / "by_command"] == made[tmp_path / "by_tool"] == 0o644
    shown = {path for path, mode in _modes(data).items() if mode & 0o077}
    assert shown == set(), "what the server itself writes is for its owner alone"


def _modes(directory: Path) -> dict[Path, int]:
    return {path: stat.S_IMODE(path.stat().st_mode) for path in directory.rglob("*")}


async def _hang(stream: trio.SocketStream) -> None:
    await trio.sleep_forever()


async def _talk_nonsense(stream: trio.SocketStream) -> None:
    await stream.send_all(b"220 mail.example ESMTP\r\n")
    await stream.receive_some()


@pytest.mark.parametrize("stranger", [_hang, _talk_nonsense])
async def test_a_stranger_on_the_port_of_a_stale_record_is_found_out(
    data: Path, stranger: Callable[[trio.SocketStream], Any]
) -> None:
    # G2-2: a pid that is another program's, and its port, too
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        port = listeners[0].socket.getsockname()[1]
        nursery.start_soon(trio.serve_listeners, stranger, listeners)
        async with _owned(data):
            stale = _record(data, port=port)
            with pytest.raises(CannotConnect, match=str(port)):
                async with connect(data, start=False):
                    pass
        async with started(data) as client:
            assert client.server.instance != stale.instance
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("start", [False, True])
async def test_a_server_that_is_stopped_is_named_and_no_stranger(
    data: Path, start: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_limits, "HANDSHAKE_S", 0.1)
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, _hang, listeners)
        async with _owned(data):
            _record(data, port=listeners[0].socket.getsockname()[1])
            environ = os.environ
            finder = Discovery(place_of(data, environ), environ, lambda _: None, owned_s=0.1)
            with pytest.raises(NoAnswer) as caught:
                async with finder.channel(start=start):
                    pass
        nursery.cancel_scope.cancel()
    text = str(caught.value)
    assert text.startswith(f"the server does not answer: process {os.getpid()} has the data in ")
    assert "said nothing within 0.1 s" in text


async def test_a_stranger_in_place_of_a_server_that_is_gone_is_told_nothing(data: Path) -> None:
    # G2-2: nobody owns the data, so that is known before anybody is spoken to
    spoken_to: list[trio.SocketStream] = []

    async def stranger(stream: trio.SocketStream) -> None:
        spoken_to.append(stream)

    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, stranger, listeners)
        _record(data, port=listeners[0].socket.getsockname()[1])
        with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:\d+ has ended"):
            async with connect(data, start=False):
                pass
        async with started(data):
            pass
        nursery.cancel_scope.cancel()
    assert spoken_to == []


async def test_nobody_on_the_port_of_a_stale_record(data: Path) -> None:
    # G2-2
    stale = _record(data, port=1)
    with pytest.raises(
        CannotConnect, match=r"127\.0\.0\.1:1 has ended.*start one with `vaala serve`"
    ):
        async with connect(data, start=False):
            pass
    async with started(data) as client:
        found = read_record(place_of(data, os.environ).record, data)
        assert isinstance(found, ServerRecord)
        assert found.instance == client.server.instance != stale.instance


@asynccontextmanager
async def _owned(data: Path) -> AsyncGenerator[None]:
    """Own the data without being a server that clients can use."""
    async with open_store(data):
        yield


async def test_data_that_another_process_owns(data: Path) -> None:
    told: list[str] = []
    finder = Discovery(place_of(data, os.environ), os.environ, told.append, owned_s=0.1)
    async with _owned(data):
        with pytest.raises(CannotStart, match=str(os.getpid())) as caught:
            async with finder.channel(start=True):
                pass
    assert caught.value.locked
    assert isinstance(read_record(place_of(data, os.environ).record, data), NoRecord)


async def test_a_server_that_is_just_ending_is_waited_for(data: Path) -> None:
    # It has taken its record away, and owns the data until the rest of it has ended.
    ended = trio.Event()
    told: list[str] = []

    async def end(*, task_status: trio.TaskStatus[None]) -> None:
        async with _owned(data):
            task_status.started()
            await ended.wait()

    def hear(notice: str) -> None:
        told.append(notice)
        ended.set()

    finder = Discovery(place_of(data, os.environ), os.environ, hear)
    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            await nursery.start(end)
            async with client_of(finder, start=True) as client:
                _kill(client.server.pid)
    finder.release()
    assert [notice.partition(":")[0] for notice in told] == [
        f"another process owns the data in {data}, perhaps a server that is just ending"
    ]


async def test_what_keeps_a_server_from_starting_is_told(data: Path) -> None:
    config = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    config.mkdir(parents=True)
    (config / "providers.yaml").write_text("providers: [")
    with pytest.raises(CannotStart, match=r"providers\.yaml"):
        async with connect(data):
            pass


async def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match=str(tmp_path / "file")):
        async with connect(tmp_path / "file" / "data"):
            pass


async def test_a_killed_server_is_started_again_and_the_turn_is_settled(
    data: Path, tmp_path: Path
) -> None:
    # H1-3: another epoch; G2-1
    script = tmp_path / "hangs.yaml"
    script.write_text(HANGS)
    async with started(data) as client:
        first = client.server
        talk = await client.create_conversation(
            directory=str(tmp_path), settings=Settings(model=f"scripted:{script}")
        )
        async with talk.subscribe() as updates, trio.open_nursery() as nursery:
            snapshot = await anext(updates)
            assert isinstance(snapshot, Snapshot)
            results = []

            async def run() -> None:
                results.append(await talk.run("go"))
                nursery.cancel_scope.cancel()

            nursery.start_soon(run)
            async for update in updates:
                if isinstance(update, Snapshot):
                    assert update.epoch != snapshot.epoch
                elif getattr(update.event, "text", "") == "I begin.":
                    os.kill(first.pid, signal.SIGKILL)
        assert results[0].turn.interrupted_by == "crash"
        assert client.server.instance != first.instance
        page = await talk.items()
        assert "user_message" in [item.__struct_config__.tag for item in page.items]


def test_the_lock_is_the_one_of_the_store(data: Path) -> None:
    from vaala.dao.data_dir import DataDir

    assert place_of(data, os.environ).owner_lock == DataDir(data).lock
    assert limits.TOKEN_BYTES >= 32
