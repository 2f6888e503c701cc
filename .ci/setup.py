"""Make a virtual environment that holds this tree and its dev tools, or reuse one that does.

    python .ci/setup.py .venv

The environment is reused while pyproject.toml and the interpreter stay the same: their hash lies
in it as a stamp. Two calls at the same time wait for each other.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    folder = ROOT / sys.argv[1]
    stamp = folder / ".vaala-stamp"
    folder.mkdir(exist_ok=True)
    with (folder / ".vaala-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _runs(folder):
            _make(folder)
        wanted = _wanted(folder)
        if stamp.exists() and stamp.read_text() == wanted:
            return 0
        print(f"{folder.name}: installing vaala and its tools (once per change)", flush=True)
        _install(folder)
        stamp.write_text(wanted)
    return 0


def _python(folder: Path) -> str:
    return str(folder / "bin" / "python")


def _runs(folder: Path) -> bool:
    """Tell whether the environment has an interpreter that still works and is new enough."""
    check = "import sys, pip; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([_python(folder), "-c", check], capture_output=True).returncode == 0
    except OSError:
        return False


def _make(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.name == ".vaala-lock":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)


def _wanted(folder: Path) -> str:
    version = subprocess.run(
        [_python(folder), "-c", "import sys; print(sys.version)"],
        capture_output=True,
        check=True,
    ).stdout
    content = (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(version + content).hexdigest()


def _install(folder: Path) -> None:
    command = [_python(folder), "-m", "pip", "install", "--quiet", "--upgrade"]
    subprocess.run([*command, "--upgrade-strategy", "only-if-needed", "-e", f"{ROOT}[dev]"],
                   check=True)  # fmt: skip


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"set-up failed: {' '.join(error.cmd)} ended with {error.returncode}")
