"""The loop that takes connections goes on whatever happens (H6-4)."""

from __future__ import annotations

import errno
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.vaala.server.transport.doors import open_door, read_all
from vaala.server.transport import limits
from vaala.server.transport.accepting import accept, connections_max, peer_of
from vaala.server.transport.listening import Listening
from vaala.server.wire import PeerInfo


class Failing(socket.socket):
    """A listener whose accept fails so often before it works."""

    failures = 0
    error = errno.EMFILE

    def accept(self) -> tuple[socket.socket, object]:
        if self.failures:
            self.failures -= 1
            raise OSError(self.error, "as if")
        return super().accept()


def take_all_descriptors(kept: list[socket.socket]) -> None:
    with suppress(OSError):
        while True:
            kept.append(socket.socket())


@contextmanager
def failing(path: Path) -> Iterator[Failing]:
    with Failing(socket.AF_UNIX) as listener:
        listener.setblocking(False)
        listener.bind(str(path))
        listener.listen(5)
        yield listener


async def take(connected: socket.socket, peer: PeerInfo) -> None:
    connected.send(b"hello")
    connected.close()


@pytest.mark.parametrize(
    "error", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EPROTO]
)
async def test_it_waits_while_the_system_has_nothing_to_give(
    error: int,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    autojump_clock: trio.testing.MockClock,
) -> None:  # H6-4
    with failing(tmp_path / "s") as listener:
        listener.failures, listener.error = 50, error
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept, Listening((listener,), (), None), take)
            async with await trio.open_unix_socket(str(tmp_path / "s")) as client:
                assert await read_all(client) == b"hello"
            async with await trio.open_unix_socket(str(tmp_path / "s")) as client:
                assert await read_all(client) == b"hello"
            nursery.cancel_scope.cancel()
    assert trio.current_time() == pytest.approx(50 * limits.ACCEPT_RETRY_S)
    assert [record.getMessage() for record in caplog.records] == [
        "cannot take connections now: as if"
    ]


async def test_it_goes_on_when_descriptors_run_out_for_real() -> None:  # H6-4
    async with open_door() as door:
        assert await door.still_serves()
        await door.quiet()
        before = door.served
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        kept: list[socket.socket] = []
        clients = [socket.socket() for _ in range(3)]
        in_use = max(one.fileno() for one in clients) + 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (in_use, hard))
        try:
            take_all_descriptors(kept)
            for client in clients:
                client.setblocking(False)
                assert client.connect_ex(("127.0.0.1", door.port)) in (0, errno.EINPROGRESS)
            await trio.testing.wait_all_tasks_blocked(0.01)
            assert door.served == before
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            for one in kept:
                one.close()
        with trio.fail_after(10):
            while door.served < before + 3:
                await trio.testing.wait_all_tasks_blocked(0.01)
        for client in clients:
            client.close()
        assert await door.still_serves()


async def test_one_connection_too_many_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 3)
    async with open_door() as door:
        async with door.websocket(), door.websocket(), door.websocket():
            async with await door.connect() as refused:
                await refused.send_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                answer = await read_all(refused)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"all the connections" in answer
        await door.quiet()
        assert await door.still_serves()


async def test_strangers_have_half_of_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CONNECTIONS_MAX", 6)
    async with open_door() as door:
        held = [await door.connect() for _ in range(20)]
        assert await door.still_serves()
        for stream in held:
            await stream.aclose()


def test_connections_leave_descriptors_to_everything_else() -> None:  # H6-4
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
        assert connections_max() == 128 - limits.DESCRIPTORS_KEPT
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_who_connects_has_a_name() -> None:
    at = Listening((), (), Path("/run/s"))
    assert peer_of(("127.0.0.1", 5), at) == PeerInfo("127.0.0.1:5", local=True)
    assert peer_of(("192.0.2.1", 5), at) == PeerInfo("192.0.2.1:5", local=False)
    assert peer_of("", at) == PeerInfo("unix:/run/s", local=True)
