"""Servers that clients start: as processes of their own, one for all, in place of what is stale."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from vaala.client import CannotConnect, CannotStart, Client, connect
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
        assert "Umask:\t0077" in (proc / "status").read_text()
        assert client.server.auto_started


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
        stale = _record(data, port=port)
        began = trio.current_time()
        async with started(data) as client:
            assert client.server.instance != stale.instance
            assert trio.current_time() - began < PATIENCE_S / 2
        nursery.cancel_scope.cancel()


async def test_nobody_on_the_port_of_a_stale_record(data: Path) -> None:
    # G2-2
    stale = _record(data, port=1)
    with pytest.raises(CannotConnect, match=r"127\.0\.0\.1:1: .*start one with `vaala serve`"):
        async with connect(data, start=False):
            pass
    async with started(data) as client:
        found = read_record(place_of(data, os.environ).record, data)
        assert isinstance(found, ServerRecord)
        assert found.instance == client.server.instance != stale.instance


async def test_data_that_another_process_owns(data: Path) -> None:
    async with open_store(data):
        with pytest.raises(CannotStart, match=str(os.getpid())) as caught:
            async with connect(data):
                pass
    assert caught.value.locked
    assert isinstance(read_record(place_of(data, os.environ).record, data), NoRecord)


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
