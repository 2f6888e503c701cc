"""Build the wheel, install it in a clean environment outside the tree, and use it there.

What only works in the source tree (a file that is not packaged, an import that finds the working
directory, a dev tool that is imported at run time) fails here.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SECONDS_MAX = 600


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="vaala-wheel-") as name:
        folder = Path(name).resolve()
        wheel = _build(folder)
        _check_content(wheel)
        environment = folder / "venv"
        _call(sys.executable, "-m", "venv", environment)
        _call(environment / "bin" / "python", "-m", "pip", "install", "--quiet", wheel)
        _use(environment / "bin" / "vaala", folder, version=wheel.name.split("-")[1])
    return 0


def _build(folder: Path) -> Path:
    # hatchling is one of the dev tools, so that building needs no network.
    _call(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, ROOT)
    (wheel,) = folder.glob("*.whl")
    return wheel


def _check_content(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    packages = {"vaala", "vaala_protocol", "vaala_storage", "vaala_executors"}
    extra = {top for top in tops - packages if not top.endswith(".dist-info")}
    if missing := packages - tops:
        sys.exit(f"the wheel lacks {sorted(missing)}")
    if extra:
        sys.exit(f"the wheel holds what is no part of it: {sorted(extra)}")
    tracked = subprocess.run(
        ["git", "ls-files", "vaala", "protocol", "storage", "executors"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split("\n")  # fmt: skip
    inside = {line.split("/", 1)[1] if not line.startswith("vaala/") else line
              for line in tracked if line and (ROOT / line).exists()}  # fmt: skip
    # What stands beside a package, such as protocol/README.md, is for readers of the tree.
    wanted = {name for name in inside if name.split("/")[0] in packages}
    if missing := wanted - set(names):
        sys.exit(f"the wheel lacks files of the tree: {sorted(missing)}")


def _use(vaala: Path, folder: Path, *, version: str) -> None:
    home = folder / "home"
    work = folder / "work"
    home.mkdir()
    work.mkdir()
    env = {"HOME": str(home), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    if version not in _call(vaala, "--version", cwd=work, env=env):
        sys.exit("vaala --version does not tell the version of the wheel")
    if "run" not in _call(vaala, "--help", cwd=work, env=env):
        sys.exit("vaala --help does not name the run command")
    try:
        answer = _call(vaala, "run", "--model", "scripted", "hello", cwd=work, env=env)
        if not answer.strip():
            sys.exit("vaala run printed no answer")
        if "hello" not in _call(vaala, "list", cwd=work, env=env):
            sys.exit("vaala list does not show the conversation that was run")
    finally:
        _call(vaala, "stop", cwd=work, env=env)
    print(f"the wheel works: {answer.strip().splitlines()[0]}")


def _call(*command: str | Path, cwd: Path = ROOT, env: dict[str, str] | None = None) -> str:
    words = [str(word) for word in command]
    result = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=SECONDS_MAX
    )
    if result.returncode != 0:
        sys.exit(
            f"{' '.join(words)} ended with {result.returncode}\n{result.stdout}{result.stderr}"
        )
    return result.stdout


if __name__ == "__main__":
    sys.exit(main())
