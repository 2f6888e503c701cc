"""The configuration of a running server: loaded anew as a whole, or not at all."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

import vaala
from tests.vaala.runtime.fake_executor import FakeExecutor
from vaala.config import ConfigError
from vaala.config.keeper import Keeper, open_keeper
from vaala.permissions.base import Access, Allow, PermissionRequest
from vaala.runtime import Runtime
from vaala.testing import Reply, chat_server
from vaala.testing.provider_chat import text
from vaala_protocol.calls import CommandDetails
from vaala_protocol.errors import BadRequest, NotFound
from vaala_protocol.settings import Settings
from vaala_protocol.state import TurnResult

SECRETIVE = """
a:
  base_url: https://user:pass@models.example/v1
  api_key: secret-key-1
  headers: {X-Key: secret-key-2}
  models: [m]
"""


def _write(directory: Path, **files: str) -> None:
    for name, content in files.items():
        (directory / f"{name}.yaml").write_text(content)


@pytest.mark.parametrize(
    ("content", "line", "key", "told"),
    [
        ("a:\n\tbase_url: x\n", 2, "", "is not YAML"),
        ("a:\n  base_url: http://x\n  api_ky: b\n", 3, "a.api_ky", "did you mean 'api_key'"),
        ("a: {base_url: http://x}\na: {base_url: http://x}\n", 2, "", "duplicate key"),
        ("a:\n  base_url: http://x\n  models: 7\n", 3, "a.models", "expected a list"),
    ],
)
async def test_a_problem_names_file_line_and_key(
    tmp_path: Path, content: str, line: int, key: str, told: str
) -> None:  # I3-1
    async with open_keeper(tmp_path, {}) as keeper:
        _write(tmp_path, providers=content)
        (problem,) = (await keeper.reload()).problems
    assert problem.file == str(tmp_path / "providers.yaml")
    assert (problem.line, problem.key) == (line, key)
    assert told in problem.text


async def test_a_variable_that_is_missing_is_named_with_its_place(tmp_path: Path) -> None:  # I3-1
    _write(tmp_path, providers="a:\n  base_url: http://x\n  api_key_env: A_KEY\n")
    async with open_keeper(tmp_path, {}) as keeper:
        (remark,) = keeper.config.remarks
        assert str(remark) == (
            f"{tmp_path}/providers.yaml:3: a.api_key_env: the environment variable A_KEY is not set"
        )
        with pytest.raises(BadRequest, match="A_KEY is not set"):
            await keeper.model_set.resolve("a/m")


async def test_a_broken_configuration_at_the_start_is_told(tmp_path: Path) -> None:
    _write(tmp_path, models="- a\n")
    with pytest.raises(ConfigError, match="expected a mapping"):
        async with open_keeper(tmp_path, {}):
            pass


async def test_a_failed_reload_changes_nothing_and_the_next_one_works(tmp_path: Path) -> None:
    _write(tmp_path, models="default: scripted\n")
    async with open_keeper(tmp_path, {}) as keeper:
        before = keeper.config, keeper.model_set
        _write(tmp_path, models="default: 3\n")
        failed = await keeper.reload()
        assert (failed.generation, keeper.generation) == (1, 1)
        assert failed.problems == keeper.problems != ()
        assert (keeper.config, keeper.model_set) == before
        _write(tmp_path, models="default: a/b\n")
        good = await keeper.reload()
        assert (good.generation, good.problems, keeper.problems) == (2, (), ())
        assert keeper.config.default_model == "a/b"


async def test_files_are_read_again_when_one_has_changed_and_only_then(tmp_path: Path) -> None:
    _write(tmp_path, models="default: scripted\n")
    async with open_keeper(tmp_path, {}) as keeper:
        told: list[int] = []
        with keeper.watch(lambda: told.append(keeper.generation)):
            await keeper.refresh()
            assert told == []
            _write(tmp_path, models="default: 3 # no name\n")
            for _ in range(2):
                await keeper.refresh()
                assert (told, [one.key for one in keeper.problems]) == ([1], ["default"])
            _write(tmp_path, models="default: a/b\n")
            await keeper.refresh()
            assert (told, keeper.problems, keeper.config.default_model) == ([1, 2], (), "a/b")
            (tmp_path / "models.yaml").unlink()
            await keeper.refresh()
            assert (told, keeper.config.default_model) == ([1, 2, 3], None)


async def test_a_turn_goes_on_with_its_model_while_the_files_are_broken_and_mended(
    tmp_path: Path,
) -> None:  # I3-2
    go = trio.Event()
    async with chat_server() as server:
        server.reply(Reply((go, *text("From the old one.").body)))
        provider = f"a:\n  base_url: {server.base_url}\n  models: [old, new]\n"
        _write(tmp_path, providers=provider, models="default: a/old\n")
        async with (
            open_keeper(tmp_path, {}) as keeper,
            _runtime(keeper) as runtime,
            trio.open_nursery() as nursery,
        ):
            chat = await runtime.create_conversation(directory="/w")
            results: list[TurnResult] = []

            async def run() -> None:
                results.append(await chat.run("go"))

            nursery.start_soon(run)
            await server.wait_requests(1)
            _write(tmp_path, models="default: [\n")
            assert (await keeper.reload()).problems
            _write(tmp_path, providers="# none\n", models="default: scripted\n")
            assert not (await keeper.reload()).problems
            runtime.definitions = keeper.definitions(runtime.definitions)
            go.set()
        assert results[0].text == "From the old one."
        assert server.requests[0].json["model"] == "old"


async def test_a_new_default_is_for_who_names_no_model(tmp_path: Path) -> None:  # I3-3
    async with chat_server() as server:
        server.answer(lambda request: text(f"I am {request.json['model']}."))
        provider = f"a:\n  base_url: {server.base_url}\n  models: [old, new]\n"
        _write(tmp_path, providers=provider, models="default: a/old\n")
        async with (
            open_keeper(tmp_path, {}) as keeper,
            _runtime(keeper) as runtime,
        ):
            pinned = await runtime.create_conversation(
                directory="/w", settings=Settings(model="a/old")
            )
            assert (await pinned.run("who?")).text == "I am old."
            with keeper.watch(lambda: _take_over(runtime, keeper)):
                result = await keeper.set("models", ("default",), "a/new")
            assert (result.generation, result.problems) == (2, ())
            new = await runtime.create_conversation(directory="/w")
            assert (await new.run("who?")).text == "I am new."
            assert (await pinned.run("who?")).text == "I am old."
            # One set of connections serves all generations: nothing was opened anew.
            assert {request.connection for request in server.requests} == {0}


def _runtime(keeper: Keeper) -> AbstractAsyncContextManager[Runtime]:
    return vaala.open_runtime(models=keeper.model_set, executors={"local": FakeExecutor()})


def _take_over(runtime: Runtime, keeper: Keeper) -> None:
    runtime.definitions = keeper.definitions(runtime.definitions)


async def test_who_watches_is_told_of_each_attempt(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    async with open_keeper(tmp_path, {}) as keeper:
        with keeper.watch(lambda: seen.append((keeper.generation, len(keeper.problems)))):
            await keeper.reload()
            _write(tmp_path, models="x: 1\n")
            await keeper.reload()
        await keeper.reload()
    assert seen == [(2, 0), (2, 1)]


async def test_a_value_that_would_be_wrong_is_told_and_changes_nothing(tmp_path: Path) -> None:
    _write(tmp_path, server="port: 1\n")
    async with open_keeper(tmp_path, {}) as keeper:
        result = await keeper.set("server", ("port",), 70_000)
        assert (result.generation, keeper.generation, keeper.problems) == (1, 1, ())
        assert result.problems[0].key == "port"
        with pytest.raises(NotFound):
            await keeper.set("nothing", ("port",), 1)
        with pytest.raises(BadRequest):
            await keeper.set("server", ("port", "x"), 1)
    assert (tmp_path / "server.yaml").read_text() == "port: 1\n"


async def test_a_cancelled_set_is_made_whole_or_not_at_all(tmp_path: Path) -> None:
    async with open_keeper(tmp_path, {}) as keeper:
        with trio.CancelScope() as scope:
            scope.cancel()
            await keeper.set("server", ("port",), 1)
        assert keeper.generation == 1 + (tmp_path / "server.yaml").exists()


async def test_secrets_are_not_told(tmp_path: Path) -> None:  # H7-4
    _write(tmp_path, providers=SECRETIVE, agents="a: {options: {api_key: k-3, max_tokens: 5}}\n")
    async with open_keeper(tmp_path, {}) as keeper:
        assert await keeper.get("providers.yaml") == {
            "a": {
                "base_url": "https://***@models.example/v1", "api_key": "***",
                "headers": {"X-Key": "***"}, "models": ["m"],
            }
        }  # fmt: skip
        assert await keeper.get("providers", ("a", "api_key")) == "***"
        assert await keeper.get("providers", ("a", "models", 0)) == "m"
        assert await keeper.get("agents", ("a", "options")) == {"api_key": "***", "max_tokens": 5}
        with pytest.raises(NotFound, match=r"there is no a\.b"):
            await keeper.get("providers", ("a", "b"))
        shown = {secret.reveal() for secret in keeper.config.secrets}
    assert shown == {"secret-key-1", "secret-key-2"}


async def test_the_files_are_listed(tmp_path: Path) -> None:
    _write(tmp_path, models="default: a/b\n")
    async with open_keeper(tmp_path, {}) as keeper:
        listed = await keeper.list()
    assert (listed.directory, listed.generation) == (str(tmp_path), 1)
    assert [file.name for file in listed.files if file.exists] == ["models.yaml"]
    assert len(listed.files) == 8


async def test_models_are_listed_with_where_they_come_from(tmp_path: Path) -> None:
    _write(
        tmp_path,
        providers="a:\n  base_url: http://127.0.0.1:1/v1\n  api_key_env: A_KEY\n  models: [m]\n"
        "b:\n  base_url: http://127.0.0.1:1/v1\n  models: [n]\n  windows: {n: 1000}\n",
    )
    async with open_keeper(tmp_path, {"OPENROUTER_API_KEY": "k"}) as keeper:
        listed = await keeper.models({})
    found = {one.name: one for one in listed.models}
    assert list(found)[:2] == ["a/m", "b/n"]
    assert (found["a/m"].usable, found["a/m"].reason) == (
        False, "the environment variable A_KEY is not set",
    )  # fmt: skip
    assert found["b/n"].context_tokens == 1000
    assert [one.source for one in listed.models if one.provider == "openrouter"] == [
        "the variable OPENROUTER_API_KEY"
    ]
    assert found["scripted"].source == "built in"
    assert listed.default == "b/n"


async def test_no_model_is_told_with_the_ways_out(tmp_path: Path) -> None:
    _write(tmp_path, models="default: gone/m\n")
    async with open_keeper(tmp_path, {}) as keeper:
        listed = await keeper.models({})
    assert listed.default is None
    assert "no model is called 'gone/m'" in listed.reason


async def test_a_rule_that_is_allowed_for_good_is_in_the_file_and_in_force(tmp_path: Path) -> None:
    log, push = "exec_command(git log:*)", "exec_command(git push:*)"
    async with open_keeper(tmp_path, {}) as keeper, _runtime(keeper) as runtime:
        await keeper.allow(log)
        assert (tmp_path / "permissions.yaml").read_text() == f'allow: ["{log}"]\n'
        _write(tmp_path, permissions="# mine\nallow:\n  - edit_file  # all\ndeny: [write_file]\n")
        await keeper.allow(push)
        await keeper.allow(push)
        assert (tmp_path / "permissions.yaml").read_text() == (
            f'# mine\nallow:\n  - edit_file  # all\n  - "{push}"\ndeny: [write_file]\n'
        )
        gate = keeper.definitions(runtime.definitions).gate
        access = Access("execute", "git push origin main")
        details = CommandDetails(command=access.subject, cwd=".")
        request = PermissionRequest("exec_command", access, details, "ask", "s")
        assert await gate.decide(request) == Allow(f"rule {push}")
        _write(tmp_path, permissions="allow: [\n")
        with pytest.raises(BadRequest, match="permissions"):
            await keeper.allow("exec_command(ls:*)")
