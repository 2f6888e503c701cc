"""`make demo`: the scripted agent works on a copy of a small project, with real tools.

No key and no network: the model's part is a script, everything else is what every run uses, the
server too, which is ended at the end. The copy and the conversation are left in a temporary folder
that the last line names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

PROMPT = "The test fails. Find out why, fix it, and show me that it passes."
BIN = Path(sys.executable).parent


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="vaala-demo-"))
    project = folder / "project"
    with as_file(files("vaala.models.scripted") / "sample") as sample:
        shutil.copytree(sample, project, ignore=shutil.ignore_patterns("__pycache__"))
    before = (project / "stats.py").read_text()
    # The script calls python3, which need not be the name of the only Python there is.
    env = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    def vaala(*words: str) -> int:
        command = [str(BIN / "vaala"), *words, "--data-dir", str(folder / "data")]
        return subprocess.run(command, cwd=project, env=env, stderr=subprocess.STDOUT).returncode

    try:
        print(f'$ vaala run --model scripted --mode full "{PROMPT}"', flush=True)
        code = vaala("run", "--model", "scripted", "--mode", "full", PROMPT)
        print("\n$ vaala list", flush=True)
        code = code or vaala("list")
    finally:
        print("\n$ vaala stop", flush=True)
        vaala("stop")
    print(f"\nThe project and the conversation are in {folder}")
    if code == 0 and (project / "stats.py").read_text() == before:
        sys.exit("the agent changed nothing")
    return code


if __name__ == "__main__":
    sys.exit(main())
