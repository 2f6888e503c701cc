"""The documentation is true: everything is in it, and what it shows runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio
from pydantic import BaseModel
from ruamel.yaml import YAML

from vaala.cli import exits
from vaala.cli.commands import COMMANDS
from vaala.config import load_config, schema
from vaala.testing import ScriptedModel, chat_server
from vaala.testing.provider_chat import text
from vaala.tools.builtin import builtin_tools

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "vaala" / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.stem}-{self.line}"


def _blocks(language: str, *pages: Path) -> Iterator[Block]:
    for page in pages:
        content = page.read_text("utf-8")
        for found in FENCE.finditer(content):
            if found[1] == language:
                line = content[: found.start()].count("\n") + 1
                yield Block(page, line, language, found[2])


PYTHON = list(_blocks("python", *PAGES))
SHELL = list(_blocks("sh", DOCS / "command-line.md"))


def _call(*command: str, **env: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command, env={**os.environ, "PATH": path, **env}, capture_output=True, text=True,
        check=False, stdin=subprocess.DEVNULL, timeout=60,
    )  # fmt: skip


@pytest.fixture
def stopped() -> Iterator[None]:
    """End the server that an example starts."""
    yield
    done = _call("vaala", "stop")
    assert done.returncode == 0, done.stderr


def test_there_are_examples_to_run() -> None:
    assert len(PYTHON) >= 7
    assert len(SHELL) >= 4


@pytest.mark.parametrize(
    "block", [block for block in PYTHON if "OPENAI_BASE_URL" not in block.text], ids=str
)
def test_python_examples_run(block: Block) -> None:
    done = _call(sys.executable, "-W", "error", "-c", block.text)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_readme_s_program_prints_what_it_promises() -> None:
    (block,) = _blocks("python", ROOT / "README.md")
    done = _call(sys.executable, "-c", block.text)
    assert done.stdout == "The weather in Oslo: 21 degrees, clear.\n"


async def test_the_example_with_a_model_server_runs() -> None:
    (block,) = (block for block in PYTHON if "OPENAI_BASE_URL" in block.text)
    async with chat_server() as server:
        server.reply(text("Hello."))
        command = [sys.executable, "-W", "error", "-c", block.text]
        env = {**os.environ, "OPENAI_BASE_URL": server.base_url}
        done = await trio.run_process(
            command, env=env, capture_stderr=True, check=False, stdin=subprocess.DEVNULL
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert server.requests[0].json["model"] == "small"


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize("block", SHELL, ids=str)
def test_shell_examples_run(block: Block) -> None:
    done = _call("sh", "-ec", block.text)
    assert (done.returncode, "vaala: " in done.stderr) == (0, False), done.stderr


def test_the_readme_shows_what_the_demo_does(tmp_path: Path) -> None:
    (block,) = _blocks("console", ROOT / "README.md")
    done = _call(sys.executable, str(ROOT / ".ci" / "demo.py"), TMPDIR=str(tmp_path))
    assert done.returncode == 0
    shown, _, rest = done.stdout.partition("\n\n$ vaala list\n")
    assert block.text.split() == shown.split()
    assert "The test fails." in rest
    assert "stopped the server (process " in rest


def _write_configuration(directory: Path) -> None:
    """Write what the page on configuration shows."""
    blocks = list(_blocks("yaml", DOCS / "configuration.md"))
    names = re.findall(r"^## (\w+\.yaml)$", (DOCS / "configuration.md").read_text(), re.MULTILINE)
    for name, block in zip(names, blocks, strict=True):
        (directory / name).touch(0o600)
        (directory / name).write_text(block.text)
    (directory / "reviewer.md").write_text("Review.")


@pytest.mark.usefixtures("stopped")
async def test_the_configuration_that_is_shown_runs() -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    directory.mkdir(parents=True)
    _write_configuration(directory)
    async with chat_server() as server:
        server.reply(text("Hello."))
        providers = directory / "providers.yaml"
        shown = providers.read_text()
        providers.write_text(shown.replace("http://127.0.0.1:9000/v1", server.base_url))
        for model in ("scripted", "here/small"):
            done = await trio.run_process(
                [sys.executable, "-m", "vaala", "run", "-a", "reviewer", "-m", model, "hello"],
                env={**os.environ, "TEAM_API_KEY": "k"}, capture_stdout=True, capture_stderr=True,
                check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
            assert (done.returncode, b"bug" in done.stderr) == (0, False), done.stderr
        assert server.requests[0].json["temperature"] == 0.2


def test_the_configuration_that_is_shown_can_be_loaded(tmp_path: Path) -> None:
    _write_configuration(tmp_path)
    config = load_config(tmp_path, {"TEAM_API_KEY": "k"})
    assert {provider.name for provider in config.providers} == {"team", "here"}
    assert config.default_model == "team/large"
    assert config.agents["reviewer"].settings.mode == "read-only"


def test_the_script_that_is_shown_can_be_played() -> None:
    (block,) = _blocks("yaml", DOCS / "models.md")
    assert ScriptedModel(YAML(typ="safe").load(block.text)).name == "scripted"


def _section(page: Path, title: str) -> str:
    """Return what stands under a heading of the second level that names ``title``."""
    parts = re.split(r"^## (.*)$", page.read_text("utf-8"), flags=re.MULTILINE)
    found = [body for head, body in zip(parts[1::2], parts[2::2], strict=True) if title in head]
    return "\n".join(found)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_every_command_and_option_is_documented(command: object) -> None:
    name = getattr(command, "name", "")
    section = _section(DOCS / "command-line.md", f"vaala {name}")
    assert section
    options = getattr(command, "options", ())
    assert [o.name for o in options if f"`{o.name}" not in section and o.name not in section] == []


def test_every_exit_code_is_documented() -> None:
    codes = [value for name, value in vars(exits).items() if name.isupper()]
    section = (DOCS / "command-line.md").read_text("utf-8").split("### Exit codes")[1]
    assert [code for code in codes if f"| {code} | " not in section] == []
    assert len(codes) >= 7


SECTIONS = [
    one for one in vars(schema).values()
    if isinstance(one, type) and issubclass(one, schema.Section) and one.model_fields
]  # fmt: skip


def test_every_file_of_the_configuration_is_documented() -> None:
    page = (DOCS / "configuration.md").read_text("utf-8")
    assert set(re.findall(r"^## (\w+\.yaml)$", page, re.MULTILINE)) == set(schema.SCHEMAS)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_key_of_the_configuration_is_documented(section: type[BaseModel]) -> None:
    assert len(SECTIONS) >= 9
    page = (DOCS / "configuration.md").read_text("utf-8")
    assert [key for key in section.model_fields if f"`{key}`" not in page] == []


def test_the_tools_are_documented() -> None:
    section = _section(DOCS / "configuration.md", "agents.yaml")
    page = section.partition("The tools that there are")[2]
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == builtin_tools().names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_somewhere(page: Path) -> None:
    targets = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in targets if not (page.parent / link).exists()] == []


def test_every_page_is_linked_from_the_index() -> None:
    index = (DOCS / "index.md").read_text("utf-8")
    pages = [page.name for page in DOCS.glob("*.md") if page.name != "index.md"]
    assert [name for name in pages if f"({name})" not in index] == []
