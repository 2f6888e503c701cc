"""A `vaala serve` of a bench's own, as a process, and what the system tells of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vaala.discovery import Ready, ServerRecord, parse_report, place_of, read_record

TICK = os.sysconf("SC_CLK_TCK")
PROGRAM = (sys.executable, "-m", "vaala")


class Server:
    """Made by `serve`."""

    def __init__(self, process: subprocess.Popen[Any], data: Path, record: ServerRecord) -> None:
        self.process = process
        self.data = data
        self.token = record.token
        self.port = record.port or 0

    @property
    def pid(self) -> int:
        return self.process.pid

    def cpu_seconds(self) -> float:
        """Return user and system time."""
        fields = self._proc("stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICK

    def memory_mb(self) -> float:
        """Return what is resident now."""
        return self._memory("VmRSS")

    def peak_mb(self) -> float:
        """Return the most that was resident since `forget_peak`."""
        return self._memory("VmHWM")

    def forget_peak(self) -> None:
        self._proc("clear_refs").write_text("5")  # proc(5): "resets the peak resident set size"

    def open_files(self) -> int:
        return len(os.listdir(self._proc("fd")))

    def threads(self) -> int:
        return len(os.listdir(self._proc("task")))

    def _memory(self, name: str) -> float:
        lines = self._proc("status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024

    def _proc(self, name: str) -> Path:
        return Path(f"/proc/{self.pid}/{name}")


@contextmanager
def serve(
    root: Path, config: Mapping[str, str], program: Sequence[str] = PROGRAM
) -> Generator[Server]:
    """Serve ``root/data`` on a free port while the block runs, with files of a configuration."""
    folder = root / "config" / "vaala"
    folder.mkdir(parents=True)
    for name, text in config.items():
        (folder / name).write_text(text)
    reading, writing = os.pipe()
    environ = {**os.environ, "XDG_CONFIG_HOME": str(root / "config"), "HOME": str(root),
               "XDG_STATE_HOME": str(root / "state")}  # fmt: skip
    data = root / "data"
    command = [*program, "serve", "--port", "0", "--data-dir", str(data),
               "--ready-fd", str(writing)]  # fmt: skip
    process = subprocess.Popen(command, env=environ, pass_fds=[writing], stdout=subprocess.DEVNULL)
    try:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            report = parse_report(pipe.readline())
        assert isinstance(report, Ready), report
        record = read_record(place_of(data, environ).record, data)
        assert isinstance(record, ServerRecord), record
        yield Server(process, data, record)
    finally:
        process.terminate()
        process.wait()
