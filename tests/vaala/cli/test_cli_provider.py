"""`vaala run` as a process against a model server on loopback, by environment and configuration."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import pytest
import trio

from vaala.testing import chat_server, provider_anthropic
from vaala.testing.provider_chat import call, document, error, text, tool_calls
from vaala.testing.validators import check_anthropic_request

Run = Callable[..., Awaitable[subprocess.CompletedProcess[bytes]]]


async def _vaala(*words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return await trio.run_process(
        [sys.executable, "-m", "vaala", *words],
        env={**os.environ, **env},
        capture_stdout=True,
        capture_stderr=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture
def run(way: str) -> Run:
    """Call `vaala run`, with variables that no server has: it was started without them."""

    async def call(*words: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        if way == "in-process":
            return await _vaala("run", "--in-process", *words, **env)
        started = await _vaala("restart")
        assert started.returncode == 0, started.stderr
        return await _vaala("run", *words, **env)

    return call


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


async def test_a_base_url_in_the_environment_is_enough(run: Run) -> None:
    async with chat_server() as server:
        server.reply(tool_calls(call("read_file", path="notes.txt")))
        server.reply(text("You should buy milk."))
        done = await run("--model", "openai/m", "read", OPENAI_BASE_URL=server.base_url)
        assert (done.returncode, done.stdout) == (0, b"You should buy milk.\n")
        assert done.stderr == b"model openai/m: --model\n> Read notes.txt\n"
        assert b"buy milk" in server.requests[1].body


async def test_a_configured_provider_is_the_default_and_its_key_is_sent_and_not_shown(
    run: Run,
) -> None:
    async with chat_server() as server:
        _configure(server.base_url)
        server.reply(text("hi"))
        done = await run("hello", MINE="sk-0123456789abcdef")
        assert (done.returncode, done.stdout) == (0, b"hi\n")
        assert done.stderr == b"model mine/small: the first provider of the configuration\n"
        assert server.requests[0].headers["authorization"] == "Bearer sk-0123456789abcdef"
        assert _holds(b"sk-0123456789abcdef") == []
        assert _holds(b"hello") != []


async def test_a_conversation_goes_on_with_a_model_of_another_provider(run: Run) -> None:
    async with chat_server() as first, chat_server() as second:
        text_of_both = (
            f"one: {{base_url: '{first.base_url}'}}\n"
            f"two: {{base_url: '{second.base_url}', api: anthropic}}\n"
        )
        (Path(os.environ["XDG_CONFIG_HOME"]) / "vaala" / "providers.yaml").write_text(text_of_both)
        first.reply(tool_calls(call("read_file", path="notes.txt")), text("Milk."))
        second.reply(provider_anthropic.text("As I said: milk.", thinking=("Hm.",)))
        first.reply(text("Milk."))
        assert (await run("--model", "one/m", "read")).stdout == b"Milk.\n"
        done = await run("--continue", "--model", "two/claude-opus-4-7", "--effort", "low", "again")
        assert (done.returncode, done.stdout) == (0, b"As I said: milk.\n")
        assert done.stderr == b"model two/claude-opus-4-7: --model\n"
        (request,) = second.requests
        assert check_anthropic_request(request.body) == []
        assert b"buy milk" in request.body
        assert request.json["output_config"] == {"effort": "low"}
        assert (await run("--continue", "and now?")).returncode == 0
        assert b"As I said" in first.requests[-1].body, "the flag held for its run alone"


async def test_a_refused_key_is_exit_code_1_and_asked_for_once(run: Run) -> None:
    async with chat_server() as server:
        server.reply(error(401, "Incorrect API key: sk-abcdefghijklm"))
        done = await run(
            "--model", "openai/m", "x",
            OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY="sk-abcdefghijklm",
        )  # fmt: skip
        assert done.returncode == 1
        assert b"vaala: " in done.stderr
        assert b"sk-abcdefghijklm" not in done.stderr + done.stdout
        assert len(server.requests) == 1


@pytest.mark.parametrize("words", [[], ["--model", "openai/m"]])
async def test_a_server_that_is_not_there_is_named_with_its_variable(
    run: Run, words: list[str]
) -> None:
    async with chat_server() as server:
        url = server.base_url
    done = await run(*words, "x", OPENAI_BASE_URL=url)
    assert done.returncode == 4
    place = f"no connection to {url.removesuffix('/v1')} (from OPENAI_BASE_URL)"
    assert f"{place}: nothing listens there; is the server running?" in str(done.stderr)
    assert b"again in" not in done.stderr


async def test_https_where_http_is_spoken_says_so(run: Run) -> None:
    async def plain(stream: trio.SocketStream) -> None:
        await stream.send_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        listeners = await nursery.start(partial(trio.serve_tcp, plain, 0, host="127.0.0.1"))
        port = listeners[0].socket.getsockname()[1]
        done = await run("x", OPENAI_BASE_URL=f"https://127.0.0.1:{port}/v1")
        nursery.cancel_scope.cancel()
    assert done.returncode == 4
    assert b"it does not speak TLS; is it http:// there?" in done.stderr


@pytest.mark.parametrize("words", [[], ["--model", "openai/m"]])
async def test_a_url_that_is_none_names_the_variable_and_the_value(
    run: Run, words: list[str]
) -> None:
    done = await run(*words, "x", OPENAI_BASE_URL="foo")
    assert done.returncode == 2
    assert b"OPENAI_BASE_URL is 'foo'; expected a URL" in done.stderr


@pytest.mark.parametrize(
    ("key", "told"),
    [("sk-abcdefghijklm", b"the key comes from OPENAI_API_KEY"), ("", b"would come from OPENAI")],
)
@pytest.mark.parametrize("words", [[], ["--model", "openai/m"]])
async def test_a_refused_key_names_its_variable(
    run: Run, key: str, told: bytes, words: list[str]
) -> None:
    async with chat_server() as server:
        server.reply(error(401, "no"))
        done = await run("x", *words, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=key)
        assert done.returncode in (1, 2)
        assert told in done.stderr


async def test_a_misspelled_model_gets_a_guess_from_the_server_s_list(run: Run) -> None:
    async with chat_server() as server:
        server.reply(error(404, "no such model"))
        server.reply(document(b'{"data": [{"id": "large"}, {"id": "small"}]}'))
        done = await run("--model", "openai/smal", "x", OPENAI_BASE_URL=server.base_url)
        assert done.returncode == 1
        assert b"did you mean openai/small?" in done.stderr


async def test_a_bad_default_names_its_file(run: Run) -> None:
    _configure("http://127.0.0.1:9/v1")
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala" / "models.yaml"
    file.write_text("default: mine/smal\n")
    done = await run("x", MINE="k")
    assert done.returncode == 2
    assert f"vaala: {file}: default: mine has no model 'smal'".encode() in done.stderr
