"""An upgrade of the package under a running server: told to everybody, and never mixed in."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
import trio

from tests.vaala.server.transport.doors import ask_on
from tests.vaala.server.transport.served import served, talk
from vaala import version
from vaala.config.keeper import open_keeper
from vaala.discovery import ServerRecord, bearer
from vaala.package import UPGRADED, Package, Upgraded

NOT_IMPORTED = "vaala.of_no_version"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that says which version lies on the disk; at first the one that runs."""
    file = tmp_path / "version.py"
    file.write_bytes(Path(version.__file__).read_bytes())
    monkeypatch.setattr(version, "__file__", str(file))
    return file


def upgrade(file: Path) -> None:
    file.write_text('VERSION = "99.0.0"\n')


async def status_of(record: ServerRecord, path: str) -> tuple[int, str]:
    assert record.port is not None
    async with await trio.open_tcp_stream("127.0.0.1", record.port) as stream:
        given = {"authorization": bearer(record.token)}
        answer = await ask_on(stream, f"127.0.0.1:{record.port}", path, more=given)
        return answer.status, json.loads(answer.body)["error"]["message"]


def test_a_package_is_looked_at_when_something_new_is_needed(installed: Path) -> None:
    package = Package(installed)
    told: list[str] = []
    with package.watch(lambda: told.append("upgraded")):
        package.check(NOT_IMPORTED)
        assert not package.look()
        upgrade(installed)
        package.check("vaala.version")  # it is there: nothing can be mixed
        assert told == []
        for _ in range(2):
            with pytest.raises(Upgraded, match=r"^vaala was upgraded: run `vaala restart`$"):
                package.check(NOT_IMPORTED)
        assert told == ["upgraded"]


@pytest.mark.parametrize("content", [None, b"", b"\xff", b"VERSION"])
def test_a_package_without_a_version_is_another_one(installed: Path, content: bytes | None) -> None:
    if content is None:
        installed.unlink()
    else:
        installed.write_bytes(content)
    assert Package(installed).look()


def test_a_package_that_cannot_be_looked_at_now_is_not_taken_for_another_one(
    tmp_path: Path,
) -> None:
    loop = tmp_path / "version.py"
    loop.symlink_to(loop)
    package = Package(loop)
    assert not package.look()
    package.check(NOT_IMPORTED)
    loop.unlink()
    upgrade(loop)
    assert package.look()


async def test_a_reload_tells_every_client_once(installed: Path, tmp_path: Path) -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    os.makedirs(directory)
    (directory / "models.yaml").write_text("default: scripted\n")
    async with served(tmp_path / "data") as server, talk(server.record) as client:
        async with talk(server.record) as other:
            await client.ask("runtime/reload")
            assert (await client.ask("runtime/status")).get("notices", []) == []
            upgrade(installed)
            assert (await client.ask("runtime/reload"))["generation"] == 3
            await client.ask("runtime/reload")
            for one in (client, other):
                await one.until('"runtime/notice"')
                notices = [event for event in one.events if event["method"] == "runtime/notice"]
                assert [notice["params"]["text"] for notice in notices] == [UPGRADED]
        assert (await client.ask("runtime/status"))["notices"] == [UPGRADED]
        async with talk(server.record) as later:
            assert later.greeting["notices"] == [UPGRADED]


async def test_the_first_plain_request_is_refused_when_it_would_mix_versions(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "vaala.server.views", raising=False)
    async with served(tmp_path / "data") as server, talk(server.record) as client:
        upgrade(installed)
        assert await status_of(server.record, "/api/v1/status") == (503, UPGRADED)
        await client.until(UPGRADED)
        assert (await client.ask("runtime/status"))["notices"] == [UPGRADED]


async def test_the_first_configuration_file_is_not_read_by_another_version(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("build", "edit", "public"):
        monkeypatch.delitem(sys.modules, f"vaala.config.{name}", raising=False)
    async with open_keeper(tmp_path / "config", {}) as keeper:
        upgrade(installed)
        with pytest.raises(Upgraded):
            await keeper.reload()
        with pytest.raises(Upgraded):
            await keeper.set("models.yaml", ("default",), "scripted")
        with pytest.raises(Upgraded):
            await keeper.get("models.yaml")
        assert keeper.generation == 1


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("openai/m", "vaala.models.chat.model"),
        ("openai/m", "vaala.models.exchange"),
        ("scripted", "vaala.models.scripted.demo"),
    ],
)
async def test_a_provider_is_not_imported_from_another_version(
    installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    async with open_keeper(tmp_path / "config", {"OPENAI_API_KEY": "k"}) as keeper:
        monkeypatch.delitem(sys.modules, module, raising=False)
        upgrade(installed)
        with pytest.raises(Upgraded):
            await keeper.model_set.resolve(name)
