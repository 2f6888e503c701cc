"""Everything that must hold before a change is taken: `make test` runs this in .venv.

All stages run, also after one has failed, so that one run tells everything. The last line says how
many tests passed and failed; the exit code is 1 when any stage failed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
STAGE_SECONDS_MAX = 1500
OTHER_PYTHONS = ("3.12", "3.13")
FAILURES_SHOWN = 20


@dataclass(frozen=True)
class Outcome:
    name: str
    ok: bool
    seconds: float


@dataclass(frozen=True)
class Tests:
    """Counts of one pytest run."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    why: tuple[str, ...] = ()
    """A line for each test that failed."""

    def __add__(self, other: Tests) -> Tests:
        return Tests(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.why + other.why,
        )


class Checks:
    """Runs stages one after the other and keeps how each went."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.tests = Tests()

    def stage(self, name: str, work: Callable[[], bool]) -> None:
        print(f"\n== {name}", flush=True)
        began = time.monotonic()
        ok = work()
        seconds = time.monotonic() - began
        self.outcomes.append(Outcome(name, ok, seconds))
        print(f"== {name}: {'ok' if ok else 'FAILED'}, {seconds:.0f} s", flush=True)

    def command(self, name: str, *command: str | Path) -> None:
        self.stage(name, lambda: _run(*command))

    def pytest(self, python: Path) -> None:
        def work() -> bool:
            ok, counts = _pytest(python)
            self.tests += counts
            return ok

        self.stage(f"pytest, Python {_version(str(python))}", work)


def main() -> int:
    checks = Checks()
    checks.command("ruff check", BIN / "ruff", "check", ".")
    checks.command("ruff format", BIN / "ruff", "format", "--check", ".")
    checks.command("import-linter", BIN / "lint-imports")
    checks.command("mypy", BIN / "mypy")
    checks.command("pyright", BIN / "pyright")
    checks.pytest(Path(sys.executable))
    checks.command("wheel in a clean environment", sys.executable, ROOT / ".ci" / "wheel.py")
    for version in OTHER_PYTHONS:
        found = _find(version)
        if found is None:
            print(f"\n== pytest, Python {version}: not found, not run", flush=True)
        elif _version(found) != _version(sys.executable):
            folder = f".venv-{version}"
            checks.command(f"set-up, Python {version}", found, ROOT / ".ci/setup.py", folder)
            if checks.outcomes[-1].ok:
                checks.pytest(ROOT / folder / "bin" / "python")
    return _report(checks.outcomes, checks.tests)


def _report(outcomes: list[Outcome], tests: Tests) -> int:
    print()
    for outcome in outcomes:
        print(f"{'ok' if outcome.ok else 'FAILED':7}{outcome.seconds:6.0f} s  {outcome.name}")
    print(f"{'':7}{sum(outcome.seconds for outcome in outcomes):6.0f} s  in all")
    failed = [outcome.name for outcome in outcomes if not outcome.ok]
    for line in tests.why[:FAILURES_SHOWN]:
        print(line)
    if failed:
        print(f"failed stages: {', '.join(failed)}")
    skipped = f", {tests.skipped} skipped (named above)" if tests.skipped else ""
    print(f"{tests.passed} passed, {tests.failed} failed{skipped}")
    return 1 if failed else 0


def _run(*command: str | Path) -> bool:
    """Run a command to its end; whatever it started ends with it when it takes too long."""
    words = [str(word) for word in command]
    process = subprocess.Popen(words, cwd=ROOT, start_new_session=True)
    try:
        return process.wait(STAGE_SECONDS_MAX) == 0
    except subprocess.TimeoutExpired:
        print(f"{words[0]} took longer than {STAGE_SECONDS_MAX} s and was ended", flush=True)
        return False
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _pytest(python: Path) -> tuple[bool, Tests]:
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        ok = _run(
            python, "-m", "pytest", "-rs", "--durations=10", "-p", "no:cacheprovider",
            f"--junitxml={report}",
        )  # fmt: skip
        counts = _counts(report)
    return ok and counts.passed > 0, counts


def _counts(report: Path) -> Tests:
    if not report.exists():
        return Tests(failed=1, why=("pytest ended without a report",))
    total = Tests()
    for suite in ElementTree.parse(report).getroot().iter("testsuite"):
        count = {name: int(suite.get(name, "0")) for name in
                 ("tests", "failures", "errors", "skipped")}  # fmt: skip
        failed = count["failures"] + count["errors"]
        passed = count["tests"] - failed - count["skipped"]
        total += Tests(passed, failed, count["skipped"], tuple(_failures(suite)))
    return total


def _failures(suite: ElementTree.Element) -> Iterator[str]:
    """Return a line for each test that failed: its name and what it said first."""
    for case in suite.iter("testcase"):
        for trouble in (*case.findall("failure"), *case.findall("error")):
            said = trouble.get("message", "").partition("\n")[0]
            yield f"{case.get('classname')}::{case.get('name')}: {said[:200]}"


def _find(version: str) -> str | None:
    """Return an interpreter of this version that runs: on PATH, or installed by pyenv."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    installed = sorted(root.glob(f"versions/{version}.*/bin/python"))
    for candidate in [f"python{version}", *map(str, installed)]:
        try:
            probe = subprocess.run(
                [candidate, "-c", "import sys, venv; print(sys.executable)"],
                capture_output=True, text=True,
            )  # fmt: skip
        except OSError:
            continue
        if probe.returncode == 0:
            return probe.stdout.strip()
    return None


def _version(python: str) -> str:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
