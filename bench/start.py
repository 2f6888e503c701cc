"""What starting costs, beside an interpreter that imports trio.

    python bench/start.py --runs 10

Whole processes, one after the other in turns; CPU is user and system time of the process and what
it started, in milliseconds. The first round is not counted: it compiles what is not compiled yet.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VAALA = str(Path(sys.executable).with_name("vaala"))


def cpu_and_wall_ms(command: list[str], cwd: str) -> tuple[float, float]:
    environ = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=cwd, env=environ, check=True, capture_output=True)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu * 1000, wall * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of cold starts")
    parser.add_argument("--runs", type=int, default=10)
    runs: int = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as folder:
        data = ["--data-dir", f"{folder}/data"]
        commands = {
            "python -c 'import trio'": [sys.executable, "-c", "import trio"],
            "vaala --version": [VAALA, "--version"],
            "vaala --help": [VAALA, "--help"],
            "vaala list": [VAALA, "list", *data],
            "vaala run, scripted": [VAALA, "run", *data, "--model", "scripted", "hello"],
        }
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(runs + 1):
            for name, command in commands.items():
                figures = cpu_and_wall_ms(command, folder)
                if number:
                    taken[name].append(figures)
    print(f"{'':26} {'CPU: min':>9} {'median':>7} {'wall: median':>14}   beside trio")
    base = statistics.median(cpu for cpu, _ in taken["python -c 'import trio'"])
    for name, measured in taken.items():
        cpu = [one for one, _ in measured]
        middle = statistics.median(cpu)
        wall = statistics.median(one for _, one in measured)
        print(f"{name:26} {min(cpu):9.0f} {middle:7.0f} {wall:14.0f}   {middle / base:5.2f} x")


if __name__ == "__main__":
    main()
