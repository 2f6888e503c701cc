"""Opening the sockets that clients connect to, and giving them up again."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import trio
from msgspec import Struct

from vaala.server.errors import CannotServe
from vaala.server.transport import limits

_SOCKET_PATH_BYTES_MAX = 103
"""macOS takes 104 bytes with the one that ends it; Linux takes four more."""


class CannotListen(CannotServe):
    """An address cannot be had; the message names it and the way out."""


class Listening(Struct, frozen=True):
    """Open sockets, and what clients call them."""

    sockets: tuple[socket.socket, ...]
    addresses: tuple[tuple[str, int], ...]
    """Numeric address and port of each TCP socket."""
    path: Path | None
    """Of the unix socket."""


@asynccontextmanager
async def listen(
    hosts: Sequence[str], port: int, path: Path | None = None, *, fall_back: bool = False
) -> AsyncGenerator[Listening]:
    """Listen while the block runs; raises `CannotListen`.

    ``port`` 0 means a free one; with ``fall_back`` a free one is also taken where a stranger has
    ``port`` (G2-4). All hosts get the same port. The unix socket is for its owner alone, and its
    file is gone in the end.
    """
    with ExitStack() as stack:
        found = _open_all(hosts, port, fall_back=fall_back)
        for one in found:
            stack.callback(one.close)
        if path is not None:
            found.append(stack.enter_context(_unix(path)))
        addresses = tuple(
            (str(one.getsockname()[0]), int(one.getsockname()[1]))
            for one in found
            if one.family != socket.AF_UNIX
        )
        try:
            yield Listening(tuple(found), addresses, path)
        finally:
            for one in found:
                trio.lowlevel.notify_closing(one)


def _open_all(hosts: Sequence[str], port: int, *, fall_back: bool) -> list[socket.socket]:
    """Open a socket for each host, all on one port."""
    opened: list[socket.socket] = []
    try:
        for host in hosts:
            opened.append(_open(host, port))
            port = opened[0].getsockname()[1]
    except OSError as error:
        for one in opened:
            one.close()
        if fall_back and error.errno == errno.EADDRINUSE:
            return _open_all(hosts, 0, fall_back=False)
        raise _cannot(hosts[len(opened)], port, error) from error
    return opened


def _open(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        # Without it a restart would have to wait for connections that are long over.
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((host, port))
        made.listen(limits.BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def _cannot(host: str, port: int, error: OSError) -> CannotListen:
    place = f"{host} port {port}"
    if error.errno == errno.EADDRINUSE:
        return CannotListen(
            f"{place} is in use by another program: choose another --port, or leave --port out to "
            "get a free one"
        )
    if error.errno == errno.EACCES:
        return CannotListen(f"{place} is not allowed to this user: choose a --port above 1023")
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return CannotListen(
            f"{host} is no address of this machine: give a numeric one to --host, such as 127.0.0.1"
        )
    return CannotListen(f"cannot listen on {place}: {error.strerror or error}")


@contextmanager
def _unix(path: Path) -> Generator[socket.socket]:
    """Listen on a unix socket while the block runs."""
    if len(os.fsencode(path)) > _SOCKET_PATH_BYTES_MAX:
        raise CannotListen(
            f"the path {path} is too long for a unix socket: at most {_SOCKET_PATH_BYTES_MAX} bytes"
        )
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.setblocking(False)
        try:
            _remove_stale(path)
            _bind_for_owner(made, path)
            made.listen(limits.BACKLOG)
            mine = os.stat(path)
        except OSError as error:
            raise CannotListen(
                f"cannot listen on the unix socket {path}: {error.strerror or error}"
            ) from error
        try:
            yield made
        finally:
            with contextlib.suppress(OSError):
                found = os.stat(path, follow_symlinks=False)
                if (found.st_dev, found.st_ino) == (mine.st_dev, mine.st_ino):
                    path.unlink()
    finally:
        made.close()


def _bind_for_owner(made: socket.socket, path: Path) -> None:
    """Bind so that the file never has another mode than 0600.

    The umask belongs to the whole process, threads included, so it is left alone: the socket is
    made in a directory of its own, which nobody else can enter, and moved to its place.
    """
    hidden = path.with_name(f".{path.name}.{os.getpid()}")
    hidden.mkdir(mode=0o700)
    try:
        inside = hidden / "s"
        made.bind(str(inside))
        inside.chmod(0o600)
        inside.rename(path)
    finally:
        hidden.rmdir()


def _remove_stale(path: Path) -> None:
    """Remove the file of a server that is gone; raises `CannotListen` when it is anything else."""
    try:
        found = os.stat(path, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise CannotListen(f"{path} is there and no socket: choose another --socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as caller:
        caller.setblocking(False)
        try:
            caller.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except BlockingIOError:  # its backlog is full, so somebody is there
            pass
    raise CannotListen(f"another program listens on {path}: stop it, or choose another --socket")
