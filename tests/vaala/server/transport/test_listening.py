"""Addresses to listen on: ports that are taken, unix sockets, and what is left in the end."""

from __future__ import annotations

import os
import socket
import stat
from pathlib import Path

import pytest
import trio

from vaala.server.transport.listening import CannotListen, listen


async def test_port_0_is_a_free_one() -> None:
    async with listen(["127.0.0.1"], 0) as one, listen(["127.0.0.1"], 0) as other:
        assert one.addresses[0][0] == "127.0.0.1"
        assert 0 < one.addresses[0][1] != other.addresses[0][1] > 0


async def test_a_port_that_is_taken_is_an_error_that_tells_the_way_out() -> None:  # G2-4
    async with listen(["127.0.0.1"], 0) as stranger:
        port = stranger.addresses[0][1]
        with pytest.raises(CannotListen, match=f"port {port} is in use .* --port"):
            async with listen(["127.0.0.1"], port):
                pass


async def test_instead_of_a_port_that_is_taken_a_free_one_can_be_had() -> None:  # G2-4
    async with listen(["127.0.0.1"], 0) as stranger:
        port = stranger.addresses[0][1]
        async with listen(["127.0.0.1"], port, fall_back=True) as found:
            assert found.addresses[0][1] not in (0, port)


async def test_all_hosts_have_one_port() -> None:
    async with listen(["127.0.0.1", "127.0.0.2"], 0) as found:
        hosts, ports = zip(*found.addresses, strict=True)
        assert hosts == ("127.0.0.1", "127.0.0.2")
        assert len(set(ports)) == 1


async def test_a_port_can_be_had_again_at_once() -> None:  # G2-1
    async with listen(["127.0.0.1"], 0) as found:
        port = found.addresses[0][1]
        client = await trio.open_tcp_stream("127.0.0.1", port)
        accepted, _ = found.sockets[0].accept()
        accepted.close()
        await client.aclose()
    async with listen(["127.0.0.1"], port) as again:
        assert again.addresses[0][1] == port


async def test_what_is_no_address_of_this_machine_is_told() -> None:
    with pytest.raises(CannotListen, match=r"192\.0\.2\.1 is no address of this machine"):
        async with listen(["192.0.2.1"], 0):
            pass


async def test_a_unix_socket_is_for_its_owner_whatever_the_umask(tmp_path: Path) -> None:  # H7-3
    before = os.umask(0)
    try:
        async with listen([], 0, tmp_path / "s"):
            found = os.stat(tmp_path / "s")
            assert stat.S_ISSOCK(found.st_mode)
            assert stat.S_IMODE(found.st_mode) == 0o600
            assert os.listdir(tmp_path) == ["s"]
    finally:
        os.umask(before)
    assert os.listdir(tmp_path) == []


async def test_the_socket_of_a_server_that_was_killed_is_replaced(tmp_path: Path) -> None:  # G2-1
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    async with listen([], 0, path):
        await (await trio.open_unix_socket(str(path))).aclose()
    assert not path.exists()


async def test_a_socket_that_somebody_answers_on_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with listen([], 0, path):
        with pytest.raises(CannotListen, match="another program listens"):
            async with listen([], 0, path):
                pass
        assert path.exists()


async def test_a_file_that_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("mine")
    with pytest.raises(CannotListen, match="no socket"):
        async with listen([], 0, path):
            pass
    assert path.read_text() == "mine"


async def test_in_the_end_the_socket_of_another_server_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with listen([], 0, path):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(path))
    assert path.exists()


@pytest.mark.parametrize("name", ["x" * 120, "missing/s"])
async def test_a_path_that_cannot_be_had_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(CannotListen, match=name):
        async with listen([], 0, tmp_path / name):
            pass


async def test_nothing_stays_open_when_a_later_address_fails(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("no socket")
    async with listen(["127.0.0.1"], 0) as found:
        port = found.addresses[0][1]
    with pytest.raises(CannotListen):
        async with listen(["127.0.0.1"], port, tmp_path / "s"):
            pass
    async with listen(["127.0.0.1"], port):
        pass
