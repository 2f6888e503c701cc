"""`vaala serve`: run the server in the foreground."""

from __future__ import annotations

import ipaddress
import os
import resource
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from vaala.cli.connecting import data_dir
from vaala.cli.exits import DONE, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.failures import mapped
from vaala.cli.standard import flush, say
from vaala.dao.errors import StoreLocked
from vaala.discovery import Failed, Ready, Report, ServerRecord, write_report
from vaala.server.errors import CannotServe
from vaala.server.serve import serve
from vaala.server.settings import ServeSettings
from vaala.server.stopping import Stop, heed_signals

DESCRIPTORS_WANTED: Final = 8192
"""Each client takes one; many systems allow 256 or 1024 until they are asked for more."""


class Starter:
    """Whoever started the server and waits for one line on a pipe; or nobody."""

    def __init__(self, descriptor: int | None) -> None:
        """Raises `CommandFailed` for a descriptor that is not open."""
        self._descriptor = descriptor
        if descriptor is None:
            return
        try:
            os.set_inheritable(descriptor, False)  # takes it by position only
        except OSError as error:
            raise CommandFailed(f"--ready-fd {descriptor}: {error.strerror}", USAGE) from error

    @property
    def waits(self) -> bool:
        return self._descriptor is not None

    def tell(self, report: Report) -> None:
        """Write the line, once; what comes after it is not told."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            write_report(descriptor, report)


def main(arguments: Namespace) -> int:
    starter = Starter(_number(arguments.ready_fd, "--ready-fd"))
    settings = _settings(arguments, starter)
    _raise_descriptor_limit()
    try:
        trio.run(partial(_run, settings, starter))
    except BaseException as error:
        known = _mapped(error)
        starter.tell(Failed(message=str(known) or repr(known), locked=_is_locked(error)))
        if known is error:
            raise
        raise known from error
    return DONE


async def _run(settings: ServeSettings, starter: Starter) -> None:
    stop = Stop()

    def ready(record: ServerRecord) -> None:
        say(f"serving {record.data_directory} at {_places(record)} (process {record.pid})")
        flush()
        starter.tell(Ready(pid=record.pid, instance=record.instance))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(heed_signals, stop)
        await serve(settings, os.environ, stop, ready)
        nursery.cancel_scope.cancel()


def _places(record: ServerRecord) -> str:
    """Return where it listens, for people; never how to be let in."""
    places = [one if one.startswith("unix:") else f"http://{one}" for one in record.addresses]
    return " and ".join(places)


def _mapped(error: BaseException) -> BaseException:
    known = mapped(_only(error))
    if isinstance(known, CannotServe):
        return CommandFailed(str(known), UNREACHABLE)
    return known


def _only(error: BaseException) -> BaseException:
    """Return what a group consists of when that is one error."""
    while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error


def _is_locked(error: BaseException) -> bool:
    return isinstance(_only(error), StoreLocked)


def _settings(arguments: Namespace, starter: Starter) -> ServeSettings:
    """Return what the command line asks for; raises `CommandFailed`."""
    port = _number(arguments.port, "--port")
    if port is not None and port > 65_535:
        raise CommandFailed(f"--port {port}: a port is a number up to 65535", USAGE)
    socket: str | None = arguments.socket
    return ServeSettings(
        data=data_dir(arguments),
        hosts=tuple(map(_host, arguments.host)) if arguments.host else None,
        port=port,
        socket=Path(socket).expanduser().absolute() if socket else None,
        allowed_hosts=tuple(arguments.allow_host or ()),
        allowed_origins=tuple(arguments.allow_origin or ()),
        idle_exit_minutes=_minutes(arguments.idle_exit),
        auto_started=starter.waits,
    )


def _host(text: str) -> str:
    """Return a numeric address; ``localhost`` is the first of this machine's."""
    if text == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.ip_address(text.strip("[]")))
    except ValueError:
        raise CommandFailed(
            f"--host {text}: give a numeric address, such as 127.0.0.1 or ::1", USAGE
        ) from None


def _number(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise CommandFailed(f"{option} {text}: give a whole number from 0 on", USAGE)
    return int(text)


def _minutes(text: str | None) -> float | None:
    try:
        minutes = None if text is None else float(text)
    except ValueError:
        minutes = -1.0
    if minutes is not None and not 0 <= minutes < 1e6:
        raise CommandFailed(f"--idle-exit {text}: give minutes, 0 for never", USAGE)
    return minutes


def _raise_descriptor_limit() -> None:
    """Ask for as many descriptors as many clients need, where the system lets us."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY in (soft, hard):
        wanted = DESCRIPTORS_WANTED if soft != resource.RLIM_INFINITY else soft
    else:
        wanted = max(soft, min(hard, DESCRIPTORS_WANTED))
    if wanted != soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
