"""Starting a server as a process of its own, that owes nothing to whoever started it.

It gets a new session, ``/`` as its directory, nothing on its standard input, and the few variables
that say who the user is and how this machine reaches others: not those of the shell that happened
to be the first, whose keys and paths each client tells by itself. The umask is the user's, because
what agents make is: files of the server itself have modes of their own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import trio
from msgspec import Struct

from vaala.client import limits
from vaala.client.errors import CannotStart
from vaala.discovery import Failed, Place, Ready, parse_report
from vaala.discovery.environment import INTERPRETER_VARIABLES
from vaala.discovery.limits import READY_LINE_BYTES_MAX
from vaala_protocol.base import Malformed

KEPT = (
    "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR",
    "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
    "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "SSL_CERT_FILE", "SSL_CERT_DIR",
    *INTERPRETER_VARIABLES,
)  # fmt: skip
"""The variables that a server inherits."""
GIVEN = {"PATH": "/usr/local/bin:/usr/local/sbin:/usr/bin:/usr/sbin:/bin:/sbin", "LANG": "C.UTF-8"}
"""For what runs on behalf of clients that tell no environment."""


class Started(Struct):
    """A server that was started, for as long as whoever started it lives.

    It is a child of this process until then: `reap` takes leave of it when it has ended.
    """

    process: subprocess.Popen[bytes]

    def reap(self) -> int | None:
        """Return its exit code when it has ended; nothing of it is left then."""
        return self.process.poll()

    def release(self) -> None:
        """Let it go on alone: it belongs to the system when this process ends."""
        if self.reap() is None:
            # Popen warns of a child that runs on; this one is meant to.
            self.process.returncode = 0


def server_command(data: Path, descriptor: int) -> list[str]:
    """Return the command of a server that tells ``descriptor`` when it is ready."""
    # -P: the directory it starts in is no place to import from.
    return [
        sys.executable, "-P", "-m", "vaala", "serve",
        "--data-dir", str(data), "--ready-fd", str(descriptor),
    ]  # fmt: skip


def server_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what a server inherits of the environment of the client that starts it."""
    return {**GIVEN, **{name: environ[name] for name in KEPT if name in environ}}


async def start_server(place: Place, environ: Mapping[str, str]) -> Started:
    """Start a server and wait until it is ready; hold the start lock of ``place`` meanwhile.

    Raises `CannotStart` with what the server says. Cancel, or a server that is not ready after
    `limits.READY_S`: it is told to end.
    """
    reader, writer = os.pipe()
    async with trio.lowlevel.FdStream(reader) as report:
        try:
            spawn = partial(_spawn, place, environ, server_command(place.data, writer), writer)
            started = await trio.to_thread.run_sync(spawn)
        finally:
            os.close(writer)
        try:
            await _wait_ready(report, started, place)
        except BaseException:
            if started.reap() is None:
                started.process.terminate()
            started.release()
            raise
    return started


def _spawn(
    place: Place, environ: Mapping[str, str], command: Sequence[str], writer: int
) -> Started:
    try:
        output = _open_output(place.output)
    except OSError as error:
        raise CannotStart(f"cannot start a server: {place.output}: {error.strerror}") from error
    try:
        return Started(
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(writer,),
                cwd="/",
                env=server_environment(environ),
                start_new_session=True,
            )
        )
    except OSError as error:
        raise CannotStart(f"cannot start a server: {command[0]}: {error.strerror}") from error
    finally:
        os.close(output)


def _open_output(path: Path) -> int:
    """Open what servers print into, for appending; a long one is set aside first."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    handle = os.open(path, flags, 0o600)
    if os.fstat(handle).st_size <= limits.OUTPUT_BYTES_MAX:
        return handle
    os.close(handle)
    path.replace(path.with_name(path.name + ".1"))
    return os.open(path, flags, 0o600)


async def _wait_ready(report: trio.lowlevel.FdStream, started: Started, place: Place) -> None:
    line = b""
    with trio.move_on_after(limits.READY_S) as scope:
        while not line.endswith(b"\n") and len(line) <= READY_LINE_BYTES_MAX:
            if not (chunk := await report.receive_some()):
                raise CannotStart(await trio.to_thread.run_sync(_last_words, started, place))
            line += chunk
    if scope.cancelled_caught:
        raise CannotStart(
            f"the server was not ready after {limits.READY_S:.0f} s; see {place.output}"
        )
    try:
        said = parse_report(line)
    except Malformed as error:
        raise CannotStart(f"the server said {line[:200]!r} when it was started") from error
    match said:
        case Ready():
            return
        case Failed(message=message, locked=locked):
            raise CannotStart(message, locked=locked)


def _last_words(started: Started, place: Place) -> str:
    """Tell how a server ended that said nothing; blocks until it has."""
    try:
        how = f"exit code {started.process.wait(timeout=1.0)}"
    except subprocess.TimeoutExpired:
        how = "it closed its report"
    with open(place.output, "rb") as output:
        output.seek(max(0, output.seek(0, os.SEEK_END) - limits.LAST_WORDS_BYTES_MAX))
        said = output.read().decode("utf-8", "replace").strip()
    return f"the server ended before it was ready ({how}); {place.output} ends with:\n{said}"
