"""`vaala run` as a process against a model server on loopback, by environment and configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import trio

from vaala.testing import chat_server
from vaala.testing.provider_chat import call, error, text, tool_calls


async def _run(*words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return await trio.run_process(
        [sys.executable, "-m", "vaala", "run", *words],
        env={**os.environ, **env},
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(autouse=True)
def notes() -> None:
    Path("notes.txt").write_text("buy milk\n")
    configuration = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    configuration.mkdir(parents=True)


def _configure(base_url: str) -> None:
    text = f"mine: {{base_url: '{base_url}', api_key_env: MINE, models: [small]}}\n"
    (Path(os.environ["XDG_CONFIG_HOME"]) / "vaala" / "providers.yaml").write_text(text)


def _holds(text: bytes) -> list[str]:
    """Return the files below the home that hold a text."""
    files = (path for path in Path.home().rglob("*") if path.is_file())
    return [str(path) for path in files if text in path.read_bytes()]


async def test_a_base_url_in_the_environment_is_enough() -> None:
    async with chat_server() as server:
        server.reply(tool_calls(call("read_file", path="notes.txt")))
        server.reply(text("You should buy milk."))
        done = await _run("--model", "openai/m", "read", OPENAI_BASE_URL=server.base_url)
        assert (done.returncode, done.stdout) == (0, b"You should buy milk.\n")
        assert done.stderr == b"model openai/m: --model\n> Read notes.txt\n"
        assert b"buy milk" in server.requests[1].body


async def test_a_configured_provider_is_the_default_and_its_key_is_sent_and_not_shown() -> None:
    async with chat_server() as server:
        _configure(server.base_url)
        server.reply(text("hi"))
        done = await _run("hello", MINE="sk-0123456789abcdef")
        assert (done.returncode, done.stdout) == (0, b"hi\n")
        assert done.stderr == b"model mine/small: the first provider of the configuration\n"
        assert server.requests[0].headers["authorization"] == "Bearer sk-0123456789abcdef"
        assert _holds(b"sk-0123456789abcdef") == []
        assert _holds(b"hello") != []


async def test_a_refused_key_is_exit_code_1_and_asked_for_once() -> None:
    async with chat_server() as server:
        server.reply(error(401, "Incorrect API key: sk-abcdefghijklm"))
        done = await _run(
            "--model", "openai/m", "x",
            OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="sk-abcdefghijklm",
        )  # fmt: skip
        assert done.returncode == 1
        assert b"vaala: " in done.stderr
        assert b"sk-abcdefghijklm" not in done.stderr + done.stdout
        assert len(server.requests) == 1
