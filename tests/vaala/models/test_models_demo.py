"""The built-in script finds and mends the bug of the sample project, with real files and tests."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import pytest

from tests.vaala.models.script_player import Agent
from vaala.models.scripted.demo import DEMO
from vaala.models.scripted.model import ScriptedModel


class Tools:
    """The five tools that the demo calls, in a directory."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.called: list[str] = []

    def __call__(self, name: str, arguments: dict[str, Any]) -> str:
        self.called.append(name)
        match name:
            case "list_dir":
                return "\n".join(sorted(path.name for path in self.root.iterdir()))
            case "read_file":
                return self.root.joinpath(arguments["path"]).read_text("utf-8")
            case "edit_file":
                path = self.root.joinpath(arguments["path"])
                before = path.read_text("utf-8")
                assert before.count(arguments["old_text"]) == 1
                path.write_text(before.replace(arguments["old_text"], arguments["new_text"]))
                return "edited"
            case "exec_command":
                command = arguments["command"].replace("python3", f"{sys.executable} -B", 1)
                done = subprocess.run(
                    command.split(), cwd=self.root, capture_output=True, text=True, check=False
                )
                return done.stdout + done.stderr
            case _:
                raise AssertionError(name)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    with as_file(files("vaala.models.scripted") / "sample") as source:
        shutil.copytree(source, tmp_path / "project")
    return tmp_path / "project"


async def test_the_demo_mends_the_bug(sample: Path) -> None:
    tools = Tools(sample)
    answer = await Agent(ScriptedModel(DEMO), tools).prompt("fix the test")
    assert tools.called == [
        "list_dir", "read_file", "exec_command", "edit_file", "exec_command",
    ]  # fmt: skip
    assert "Before: FAILED (failures=1)" in answer
    assert "After: Ran 3 tests, OK" in answer
    agent = Agent(ScriptedModel(DEMO), tools)
    assert (await agent.prompt("again")).endswith("The tests say: OK")


async def test_elsewhere_it_touches_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    tools = Tools(tmp_path)
    answer = await Agent(ScriptedModel(DEMO), tools).prompt("hello\nthere")
    assert tools.called == ["list_dir"]
    assert 'You said "hello"' in answer
    assert 'the first is "a.txt"' in answer
