"""The guards that every test stands on."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import hypothesis
import pytest
import trio


def test_a_connection_to_another_machine_is_refused_before_a_packet_is_sent() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock,
        pytest.raises(RuntimeError, match=r"'192\.0\.2\.1': tests use 127\.0\.0\.1"),
    ):
        sock.connect(("192.0.2.1", 80))


def test_a_host_name_is_not_looked_up() -> None:
    with pytest.raises(RuntimeError, match="example"):
        socket.getaddrinfo("api.example.com", 443)


async def test_the_guard_also_stands_below_trio() -> None:
    with pytest.raises(RuntimeError, match=r"192\.0\.2\.1"):
        await trio.open_tcp_stream("192.0.2.1", 80)


async def test_loopback_is_open() -> None:
    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, trio.SocketStream.send_eof, [listener])
        port = listener.socket.getsockname()[1]
        async with await trio.open_tcp_stream("localhost", port) as stream:
            assert await stream.receive_some() == b""
        nursery.cancel_scope.cancel()


def test_home_is_empty_and_the_working_directory(isolated: Path) -> None:
    assert Path.home() == Path.cwd() == isolated
    assert list(isolated.iterdir()) == []
    assert Path(os.environ["XDG_DATA_HOME"]).is_relative_to(isolated)


def test_no_key_of_the_user_is_seen() -> None:
    assert [name for name in os.environ if name.endswith("_API_KEY")] == []


def test_hypothesis_tries_the_same_examples_in_each_run() -> None:
    assert hypothesis.settings.default is not None
    assert hypothesis.settings.default.derandomize
