"""`vaala models add`, `remove` and `test`, against servers of models on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.vaala.cli.conftest import Vaala
from tests.vaala.cli.processes import on_terminal, read_rest, read_until
from vaala.testing import ChatServer, Reply, Request, chat_server, provider_anthropic
from vaala.testing.provider_chat import error, text

KEY = "key-0123456789abcdef"


@pytest.fixture
def config(isolated: Path) -> Path:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    directory.mkdir(parents=True)
    return directory


def _listing(*names: str) -> Reply:
    body = json.dumps({"data": [{"id": name} for name in names]}).encode()
    return Reply((body,), headers=(("content-type", "application/json"),))


def _like_openai(request: Request) -> Reply:
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return error(401, f"Incorrect API key {request.headers.get('authorization')}")
    if request.path == "/v1/models":
        return _listing("large", "small")
    return text("Hello.") if request.path == "/v1/chat/completions" else error(404, "not here")


def _like_anthropic(request: Request) -> Reply:
    if request.headers.get("x-api-key") != KEY:
        return provider_anthropic.failed(401, "authentication_error", "no key")
    return _listing("claude-x") if request.path.startswith("/v1/models") else error(404, "?")


@asynccontextmanager
async def _server(answer: object = _like_openai) -> AsyncGenerator[ChatServer]:
    async with chat_server() as server:
        server.answer(answer)  # type: ignore[arg-type]
        yield server


async def _vaala(*words: str, stdin: str = "") -> subprocess.CompletedProcess[bytes]:
    return await trio.run_process(
        [sys.executable, "-m", "vaala", *words],
        capture_stdout=True, capture_stderr=True, check=False, stdin=stdin.encode(),
    )  # fmt: skip


def _said(result: subprocess.CompletedProcess[bytes]) -> str:
    assert KEY.encode() not in result.stdout + result.stderr
    return result.stderr.decode()


async def test_a_provider_is_tried_and_written_down(config: Path) -> None:
    (config / "providers.yaml").write_text("# mine\nother:  # first\n  base_url: http://o.test\n")
    async with _server() as server:
        result = await _vaala(
            "models", "add", "team", "--url", server.url, "--key-stdin", "--model", "small",
            "--default", "--test", "--json", stdin=f"{KEY}\n",
        )  # fmt: skip
        said = _said(result)
        assert result.returncode == 0, said
        paths = [request.path for request in server.requests]
    assert paths == ["/v1/models", "/v1/chat/completions"]
    assert f"it speaks chat at {server.base_url}" in said
    assert "it has 2 models" in said
    assert "team/small answers: first byte after " in said
    assert '"Hello."; 10 tokens in, 5 out' in said
    assert (config / "providers.yaml").read_text() == (
        "# mine\nother:  # first\n  base_url: http://o.test\n"
        f"team:\n  base_url: {server.base_url}\n  api_key_secret: team\n"
    )
    secrets = config / "secrets.yaml"
    assert (secrets.read_text(), secrets.stat().st_mode & 0o777) == (f"team: {KEY}\n", 0o600)
    assert (config / "models.yaml").read_text() == "default: team/small\n"
    assert json.loads(result.stdout)["default"] == "team/small"


async def test_the_format_is_found_out(config: Path) -> None:
    (config / "key").write_text(KEY)
    (config / "key").chmod(0o600)
    async with _server(_like_anthropic) as server:
        words = ("--url", f"{server.base_url}/messages", "--key-file", str(config / "key"))
        result = await _vaala("models", "add", "claude", *words)
        assert result.returncode == 0, _said(result)
    assert (config / "providers.yaml").read_text() == (
        f"claude:\n  base_url: {server.base_url}\n  api: anthropic\n"
        f"  api_key_file: {config / 'key'}\n"
    )


async def test_what_does_not_work_is_not_written(config: Path) -> None:
    async with _server() as server:
        result = await _vaala(
            "models", "add", "team", "--url", server.base_url, "--key-command", "echo wrong-key-1"
        )
    said = _said(result)
    assert result.returncode == 1
    assert "the key was refused" in said
    assert "the key comes from the command echo; nothing was changed (--no-test adds it)" in said
    assert "wrong-key-1" not in said
    assert os.listdir(config) == []


async def test_without_a_test_nobody_is_asked(config: Path) -> None:
    result = await _vaala(
        "models", "add", "team", "--url", "http://127.0.0.1:1/v1", "--key-env", "TEAM", "--no-test"
    )
    assert result.returncode == 0, _said(result)
    assert "api_key_env: TEAM" in (config / "providers.yaml").read_text()


async def test_what_is_there_is_changed_only_when_that_is_confirmed(config: Path) -> None:
    old = (
        "team:\n  base_url: http://127.0.0.1:1/v1  # old\n  api_key: old-key-0123\n"
        "  windows: {large: 9}\n"
    )
    (config / "providers.yaml").write_text(old)
    async with _server() as server:
        words = ("models", "add", "team", "--url", server.base_url, "--key-stdin")
        result = await _vaala(*words, stdin=KEY)
        said = _said(result)
        assert result.returncode == 2
        assert f"team.base_url: http://127.0.0.1:1/v1 -> {server.base_url}" in said
        assert "team.api_key: taken out" in said
        assert "confirm with --yes" in said
        assert "old-key" not in said
        assert (config / "providers.yaml").read_text() == old
        result = await _vaala(*words, "--yes", stdin=KEY)
        assert result.returncode == 0, _said(result)
    assert (config / "providers.yaml").read_text() == (
        f"team:\n  base_url: {server.base_url}  # old\n  windows: {{large: 9}}\n"
        "  api_key_secret: team\n"
    )


async def test_a_running_server_has_the_new_model(config: Path) -> None:
    assert (await _vaala("restart")).returncode == 0
    async with _server() as server:
        words = ("--url", server.base_url, "--key-stdin", "--model", "small", "--default")
        assert (await _vaala("models", "add", "team", *words, stdin=KEY)).returncode == 0
        assert (await _vaala("run", "hello")).stdout == b"Hello.\n"


async def test_a_person_is_asked_and_the_key_is_not_shown(config: Path) -> None:
    async with _server() as server:
        await trio.to_thread.run_sync(_answer_questions, server.url)
        assert [request.path for request in server.requests][-1] == "/v1/chat/completions"
    assert (config / "secrets.yaml").read_text() == f"mine: {KEY}\n"
    assert (config / "models.yaml").read_text() == "default: mine/small\n"


def _answer_questions(url: str) -> None:
    with on_terminal("models", "add") as (process, terminal):
        seen = b""
        for question, answer in (
            (b"provider, a number or a name: ", url),
            (b"name for it [local]: ", "mine"),
            (b"key, a number or a name [none]: ", "1"),
            (b"key of mine (not shown): ", KEY),
            (b"model, a number or a name [large]: ", "2"),
            (b"try it with one short request? [Y/n] ", ""),
            (b"make mine/small the default? [Y/n] ", ""),
        ):
            seen += read_until(terminal, question)
            os.write(terminal, f"{answer}\n".encode())
        seen += read_rest(terminal)
        assert process.wait(30) == 0, seen
        assert b"ANTHROPIC_API_KEY" not in seen
        assert b"answers: first byte after" in seen
        assert KEY.encode() not in seen


async def test_a_person_who_stops_changes_nothing(config: Path) -> None:
    def stop() -> bytes:
        with on_terminal("models", "add", "anthropic") as (process, terminal):
            read_until(terminal, b"key, a number or a name [type]: ")
            os.write(terminal, b"1\n")
            read_until(terminal, b"key of anthropic (not shown): ")
            os.write(terminal, b"\x04")
            said = read_rest(terminal)
            assert process.wait(30) == 1, said
            return said

    assert b"nothing was changed" in await trio.to_thread.run_sync(stop)
    assert os.listdir(config) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("add",), "name a provider, as in: vaala models add anthropic"),
        (("add", "team"), "team: say where it is, with --url; known are anthropic, openai"),
        (("add", "openai"), "openai needs a key: say where it is, with --key-env, --key-file"),
        (("add", "openai", "--key-env", "A", "--key-file", "B"), "a provider has one key"),
        (("add", "openai", "--key-env", "NO_SUCH"), "NO_SUCH is not set; or add it with --no-test"),
        (("add", "openai", "--key-stdin"), "--key-stdin: nothing came"),
        (("add", "a b", "--url", "http://x", "--no-test"), "'a b' is no name"),
        (("add", "x", "--url", "x.test", "--no-test"), "expected a URL that begins with http://"),
        (("list", "--url", "http://x"), "models list takes no --url"),
        (("remove", "team", "--default"), "models remove takes no --default"),
        (("remove",), "models remove: name a provider"),
        (("remove", "team"), "providers.yaml has no provider 'team'; there are: none"),
        (("test", "nowhere/x"), "no model is called 'nowhere/x'"),
    ],
)
def test_what_cannot_be_done_is_told(vaala: Vaala, words: tuple[str, ...], said: str) -> None:
    result = vaala("models", *words)
    assert (result.code, result.out) == (2, "")
    assert said in result.err


def test_a_provider_is_removed_with_what_is_its_own(vaala: Vaala, config: Path) -> None:
    (config / "providers.yaml").write_text(
        "a: {base_url: 'http://a', api_key_secret: a}\nb: {base_url: 'http://b'}  # stays\n"
    )
    (config / "secrets.yaml").touch(0o600)
    (config / "secrets.yaml").write_text("a: key-a\nb: key-b\n")
    (config / "models.yaml").write_text("default: a/m\ntitles: b/m\n")
    asked = vaala("models", "remove", "a")
    assert (asked.code, "key-a" in asked.err) == (2, False)
    assert "models.yaml: default: taken out" in asked.err
    assert vaala("models", "remove", "a", "--yes").code == 0
    assert (config / "providers.yaml").read_text() == "b: {base_url: 'http://b'}  # stays\n"
    assert (config / "secrets.yaml").read_text() == "b: key-b\n"
    assert (config / "models.yaml").read_text() == "titles: b/m\n"


async def test_a_model_is_tried(config: Path) -> None:
    async with _server() as server:
        (config / "providers.yaml").write_text(
            f"team: {{base_url: '{server.base_url}', api_key: {KEY}, models: [small]}}\n"
        )
        result = await _vaala("models", "test")
        assert result.stdout.startswith(b"team/small answers: first byte after "), _said(result)
        shown = json.loads((await _vaala("models", "test", "team/small", "--json")).stdout)
        assert (shown["text"], shown["finish"], shown["usage"]["output"]) == ("Hello.", "stop", 5)
        server.reply(error(429, "slow down"))
        failed = await _vaala("models", "test", "--json")
        assert (failed.returncode, json.loads(failed.stdout)["error"]["kind"]) == (1, "rate_limit")
        assert "slow down" in _said(failed)
