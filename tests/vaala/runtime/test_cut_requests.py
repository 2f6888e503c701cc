"""A local server that cuts requests without a word is told of, once, with the way out."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import vaala
from tests.vaala.runtime.driving import script
from vaala.cut_requests import SIZE_BYTES_MIN, is_cut
from vaala.handle import ConversationHandle
from vaala.models.client import is_near
from vaala.models.provider import Provider
from vaala.models.scripted import ScriptedModel
from vaala.models.set import open_models
from vaala.runtime import Runtime
from vaala.testing import ChatServer, chat_server
from vaala.testing.provider_chat import text, usage_chunk
from vaala_protocol.items import Notice

LONG = "A sentence of some words. " * 3000
FULL = usage_chunk(prompt=4096)


class NearScript(ScriptedModel):
    is_near = True


@asynccontextmanager
async def local(directory: Path) -> AsyncGenerator[tuple[ChatServer, Runtime]]:
    async with chat_server() as server:
        provider = Provider("ollama", server.base_url)
        async with open_models([provider], {}, local_servers=()) as models:
            model, _ = await models.resolve("ollama/qwen3")
            async with (
                vaala.open_store(directory) as store,
                vaala.open_runtime(models=model, storage=store) as runtime,
            ):
                yield server, runtime


async def notices(handle: ConversationHandle) -> list[Notice]:
    page = await handle.items(limit=100)
    return [item for item in page.items if isinstance(item, Notice)]


async def test_a_request_that_was_cut_is_told_once(tmp_path: Path) -> None:
    async with local(tmp_path / "data") as (server, runtime):
        handle = await runtime.create_conversation(directory=str(tmp_path))
        server.reply(text("Hello.", usage=usage_chunk(prompt=900)))
        await handle.run("hello")
        assert await notices(handle) == []
        server.reply(text("Well.", usage=FULL), text("Well.", usage=FULL))
        await handle.run(LONG)
        await handle.run("and now?")
        (notice,) = await notices(handle)
        assert (notice.level, notice.code) == ("warning", "request_cut")
        assert "ollama/qwen3 says that it read 4,096 tokens of a request" in notice.text
        assert "OLLAMA_CONTEXT_LENGTH" in notice.text
        assert "num_ctx" in notice.text
        assert "windows: {qwen3: 32768}" in notice.text
        # The model is not told.
        assert b"num_ctx" not in server.requests[-1].body
        id = handle.id
    async with local(tmp_path / "data") as (server, runtime):
        handle = await runtime.open_conversation(id)
        server.reply(text("Well.", usage=FULL))
        await handle.run("and after a restart?")
        assert len(await notices(handle)) == 1


async def test_an_image_is_no_sign_of_a_cut(tmp_path: Path) -> None:
    async with local(tmp_path / "data") as (server, runtime):
        handle = await runtime.create_conversation(directory=str(tmp_path))
        server.reply(text("A cat.", usage=usage_chunk(prompt=1200)))
        await handle.run(f"What is this? data:image/png;base64,{'iVBORw0KGgo' * 4000}")
        assert await notices(handle) == []


@pytest.mark.parametrize(
    ("near", "size", "read", "cut"),
    [
        (True, 80_000, 4096, True),
        (True, 80_000, 9_999, True),
        (True, 80_000, 10_000, False),
        (True, 80_000, 0, False),  # it does not say
        (True, SIZE_BYTES_MIN - 1, 10, False),
        (False, 80_000, 4096, False),
    ],
)
def test_only_what_is_sure_is_told(near: bool, size: int, read: int, cut: bool) -> None:
    model = NearScript({"steps": [{"say": "x"}]}) if near else script({"say": "x"})
    assert is_cut(model, size, read) is cut


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:11434/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:11434/v1", True),
        ("http://192.168.1.20:11434/v1", True),
        ("http://box.local:11434/v1", True),
        ("https://api.openai.com/v1", False),
        ("https://8.8.8.8/v1", False),
        ("http://[", False),
    ],
)
def test_a_near_server_is_told_by_its_address(url: str, near: bool) -> None:
    assert is_near(url) is near
