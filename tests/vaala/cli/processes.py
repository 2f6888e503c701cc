"""`vaala` as a process of its own, with or without a terminal, for tests."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PROGRAM = [sys.executable, "-m", "vaala"]
PATIENCE_S = 30.0


@contextmanager
def started(*words: str, **options: object) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [*PROGRAM, *words],
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        | options,  # type: ignore[call-overload] # the options of Popen
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def read_until(descriptor: int, wanted: bytes) -> bytes:
    """Read until ``wanted`` has come; fails when it does not, or the other end closes."""
    seen = b""
    until = time.monotonic() + PATIENCE_S
    while wanted not in seen:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, until - time.monotonic()))
        data = os.read(descriptor, 4096) if ready else b""
        assert data, f"{wanted!r} did not come, but {seen!r}"
        seen += data
    return seen


def read_rest(descriptor: int) -> bytes:
    """Read what comes until the other end of a terminal closes."""
    seen = b""
    with suppress(OSError):  # EIO is how a terminal tells its end on Linux
        while data := os.read(descriptor, 4096):
            seen += data
    return seen


@contextmanager
def on_terminal(*words: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """Run with a terminal of its own, the controlling one; yield what the person holds."""
    master, slave = pty.openpty()
    try:
        with started(
            *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            preexec_fn=lambda: os.close(os.open(os.ttyname(slave), os.O_RDWR)),
        ) as process:  # fmt: skip
            os.close(slave)
            yield process, master
    finally:
        os.close(master)


def wait_for(path: Path) -> None:
    """Wait until a file has text."""
    until = time.monotonic() + PATIENCE_S
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < until, f"{path} was not made"
        select.select([], [], [], 0.01)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
