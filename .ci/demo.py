"""`make demo`: the scripted agent works on a copy of a small project, with real tools.

No key and no network: the model's part is a script, everything else is what every run uses. The
copy and the conversation are left in a temporary folder that the last lines name.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from importlib.resources import as_file, files
from pathlib import Path

PROMPT = "The test fails. Find out why, fix it, and show me that it passes."


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="vaala-demo-"))
    project = folder / "project"
    with as_file(files("vaala.models.scripted") / "sample") as sample:
        shutil.copytree(sample, project)
    vaala = str(Path(sys.executable).parent / "vaala")
    data = ["--data-dir", str(folder / "data")]
    run = [vaala, "run", "--model", "scripted", "--mode", "full", "--cwd", str(project), *data]
    print(f"$ vaala run --model scripted --mode full '{PROMPT}'", flush=True)
    code = subprocess.run([*run, PROMPT]).returncode
    if code == 0:
        print("\n$ vaala list", flush=True)
        code = subprocess.run([vaala, "list", *data]).returncode
    print(f"\nThe project is in {project}, the conversation in {folder / 'data'}.")
    return code


if __name__ == "__main__":
    sys.exit(main())
