"""Variables of keys that the configuration names: no command sees them, from which moment on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.executors.running import run
from vaala.config.keeper import open_keeper
from vaala.dao.opening import open_memory_store
from vaala.runtime import Runtime
from vaala.server.wiring import open_user_runtime
from vaala_protocol.methods.runtime import ClientEnvironment

TEAM = "team: {base_url: 'http://127.0.0.1:1', api_key_env: TEAM_KEY, models: [m]}\n"


async def inherited(runtime: Runtime, directory: Path) -> str:
    async with runtime.executors["local"].open_workspace(str(directory)) as workspace:
        return (await run(workspace, "env"))[1]


async def test_a_key_that_a_reload_names_is_withheld_from_then_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "of-the-server")
    config = tmp_path / "config"
    config.mkdir()
    async with (
        open_keeper(config, os.environ) as keeper,
        open_memory_store() as store,
        open_user_runtime(store, keeper, os.environ) as runtime,
    ):
        talk = await runtime.create_conversation(directory=str(tmp_path))
        environment = (await runtime.conversation(talk.id)).environment
        overlay: dict[str, str | None] = {"TEAM_KEY": "of-the-client", "TZ": "UTC"}
        environment.adopt(ClientEnvironment(directory="/", overlay=overlay))
        assert "of-the-server" in await inherited(runtime, tmp_path)
        assert "TEAM_KEY" in environment.overlay

        (config / "providers.yaml").write_text(TEAM)
        assert not (await keeper.reload()).problems
        assert "of-the-server" not in await inherited(runtime, tmp_path)
        assert (environment.overlay["TZ"], "TEAM_KEY" in environment.overlay) == ("UTC", False)


async def test_a_key_that_is_named_from_the_start_is_withheld(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM_KEY", "of-the-server")
    (tmp_path / "providers.yaml").write_text(TEAM)
    async with (
        open_keeper(tmp_path, os.environ) as keeper,
        open_memory_store() as store,
        open_user_runtime(store, keeper, os.environ) as runtime,
    ):
        talk = await runtime.create_conversation(directory=str(tmp_path))
        environment = (await runtime.conversation(talk.id)).environment
        environment.adopt(ClientEnvironment(directory="/", overlay={"TEAM_KEY": "of-the-client"}))
        assert "TEAM_KEY" not in environment.overlay
        assert "of-the-server" not in await inherited(runtime, tmp_path)
