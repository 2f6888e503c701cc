"""The environment of a client: what it sends, what commands get of it, and what they never get."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from tests.vaala.services.conftest import Desk
from vaala.discovery.environment import (
    INTERPRETER_VARIABLES,
    KEY_ORDER,
    KEY_VARIABLES,
    client_environment,
)
from vaala.services.environment import Environment
from vaala_executors import Command, Workspace
from vaala_executors.local import LocalExecutor
from vaala_protocol.methods.runtime import ClientEnvironment

SHELL = {
    "PATH": "/venv/bin:/usr/bin",
    "VIRTUAL_ENV": "/venv",
    "CONDA_PREFIX": "/conda",
    "LC_ALL": "de_DE.UTF-8",
    "OPENAI_API_KEY": "sk-client",
    "OPENAI_BASE_URL": "http://127.0.0.1:1/v1",
    "OPENROUTER_API_KEY": "",
    "AWS_SECRET_ACCESS_KEY": "aws",
    "ACME_KEY": "acme",
    "NODE_ENV": "test",
}


def test_what_a_client_sends() -> None:
    sent = client_environment(SHELL, "/home/u/project")
    assert sent == ClientEnvironment(
        directory="/home/u/project",
        keys={"OPENAI_API_KEY": "sk-client", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
        overlay={
            "PATH": "/venv/bin:/usr/bin",
            "VIRTUAL_ENV": "/venv",
            "LANG": None,
            "TZ": None,
            "SSH_AUTH_SOCK": None,
            **dict.fromkeys(INTERPRETER_VARIABLES),
            "CONDA_PREFIX": "/conda",
            "LC_ALL": "de_DE.UTF-8",
        },
    )


def test_what_is_configured_to_be_sent_as_well() -> None:
    forward = ["NODE_ENV", "JAVA_HOME", "ACME_KEY", "OPENAI_API_KEY"]
    sent = client_environment(SHELL, "/p", keys=["ACME_KEY"], forward=forward)
    assert sent.keys["ACME_KEY"] == "acme"
    assert (sent.overlay["NODE_ENV"], sent.overlay["JAVA_HOME"]) == ("test", None)
    assert not {"ACME_KEY", "OPENAI_API_KEY"} & set(sent.overlay), "a key is for models alone"


def test_a_client_needs_nothing_of_the_runtime_to_collect_it() -> None:
    program = (
        "import sys; from vaala.discovery.environment import client_environment, KEY_ORDER\n"
        "client_environment({}, '/')\n"
        "heavy = ('vaala.models', 'vaala.tools', 'vaala.services', 'httpx', 'pydantic', 'trio')\n"
        "sys.exit(', '.join(name for name in heavy if name in sys.modules) or 0)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        check=False,
        capture_output=True,
        cwd=Path(__file__).parents[3],
    )
    assert (ran.returncode, ran.stderr) == (0, b"")


def test_the_keys_of_providers() -> None:
    assert set(KEY_ORDER) - set(KEY_VARIABLES) == {"OPENAI_BASE_URL"}


def test_nobody_has_spoken() -> None:
    environment = Environment(own={"CONDA_PREFIX": "/server"})
    assert (dict(environment.keys), dict(environment.overlay)) == ({}, {})


def test_what_was_said_last_counts_and_nothing_of_what_was_said_before() -> None:
    environment = Environment(own={"CONDA_PREFIX": "/server", "LC_TIME": "C", "HOME": "/h"})
    environment.adopt(client_environment(SHELL, "/p"))
    assert environment.overlay["CONDA_PREFIX"] == "/conda"
    assert environment.overlay["LC_TIME"] is None, "only the shell of the server had it"
    assert "HOME" not in environment.overlay
    assert environment.keys["OPENAI_API_KEY"] == "sk-client"
    environment.adopt(client_environment({"PATH": "/bin", "GEMINI_API_KEY": "g"}, "/q"))
    assert environment.overlay["CONDA_PREFIX"] is None
    assert environment.overlay["VIRTUAL_ENV"] is None
    assert dict(environment.keys) == {"GEMINI_API_KEY": "g"}
    environment.adopt(ClientEnvironment(directory="/r"))
    assert (dict(environment.keys), dict(environment.overlay)) == ({}, {})


def test_no_key_passes_for_a_variable_of_commands_nor_shows_itself() -> None:
    environment = Environment(own={}, withheld=lambda: ["ACME_KEY"])
    said = ClientEnvironment(
        directory="/",
        keys={"OTHER_KEY": "k1-secret"},
        overlay={"OPENAI_API_KEY": "k2-secret", "ACME_KEY": "k3-secret", "OTHER_KEY": "k4-secret"},
    )
    environment.adopt(said)
    assert dict(environment.overlay) == {}
    assert "secret" not in repr(environment)


async def run(workspace: Workspace, shell: str) -> str:
    with trio.fail_after(20):
        async with workspace.start(Command(shell=shell)) as process:
            return b"".join([piece async for piece in process.output()]).decode()


def virtual_environment(directory: Path) -> Path:
    """Make what an activated environment is to a shell: a first directory of programs."""
    programs = directory / "venv" / "bin"
    programs.mkdir(parents=True)
    python = programs / "python"
    python.write_text("#!/bin/sh\necho the python of the environment\n")
    python.chmod(0o755)
    return programs


async def test_a_local_command_runs_in_the_environment_of_the_client(
    desk: Desk, tmp_path: Path
) -> None:
    programs = virtual_environment(tmp_path)
    before = await run(desk.workspace, "which python; echo $VIRTUAL_ENV")
    shell = {"PATH": f"{programs}:{os.environ['PATH']}", "VIRTUAL_ENV": str(programs.parent)}
    desk.environment.adopt(client_environment(shell, str(tmp_path)))
    output = await run(desk.workspace, "which python; python; echo $VIRTUAL_ENV; echo ${TZ-unset}")
    assert output.splitlines() == [
        f"{programs}/python",
        "the python of the environment",
        f"{programs.parent}",
        "unset",
    ]
    # Of that conversation alone.
    assert await run(desk.inner, "which python; echo $VIRTUAL_ENV") == before


@pytest.mark.parametrize("forwarded", [(), ("OPENAI_API_KEY", "ACME_KEY")])
async def test_no_command_sees_a_key(
    tmp_path: Path, nursery: trio.Nursery, forwarded: tuple[str, ...]
) -> None:
    server = {**os.environ, "OPENAI_API_KEY": "sk-server", "ACME_KEY": "acme-server"}
    withheld = (*KEY_VARIABLES, "ACME_KEY")
    async with (
        LocalExecutor(environ=server, strip=lambda: withheld) as executor,
        executor.open_workspace(str(tmp_path)) as inner,
    ):
        desk = Desk(tmp_path, inner, nursery, environment=Environment(withheld=lambda: withheld))
        said = client_environment(SHELL, "/", keys=["ACME_KEY"], forward=forwarded)
        overlay = {**said.overlay, "PATH": os.environ["PATH"], "ACME_KEY": "acme-client"}
        desk.environment.adopt(ClientEnvironment(directory="/", keys=said.keys, overlay=overlay))
        output = await run(desk.workspace, "env")
    assert "VIRTUAL_ENV=/venv" in output
    for secret in ("sk-server", "sk-client", "acme-server", "acme-client", "127.0.0.1:1"):
        assert secret not in output
