"""A conversation whose files were damaged opens, shows what is left of it, and goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.vaala.runtime.driving import calls, script
from vaala.dao.opening import open_store
from vaala.embed import open_runtime
from vaala_protocol.errors import NotFound
from vaala_protocol.settings import Settings

STEPS = (
    {"call": {"tool": "list_dir", "arguments": {"path": "."}}},
    {"say": "fine"},
)
Damage = Callable[[bytes], bytes]


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


DAMAGE: dict[str, Damage] = {
    "an empty file": lambda data: b"",  # G1-4
    "the header alone": lambda data: lines(data)[0],  # G1-4
    "without the header": lambda data: b"".join(lines(data)[1:]),
    "a torn end": lambda data: data[:-7],  # G1-1
    "a torn end and an empty line": lambda data: data[:-7] + b"\n\n",  # G1-2
    "zeros in the middle": lambda data: (  # G1-3
        data[: len(data) // 2] + bytes(300) + data[len(data) // 2 :]
    ),
    "zeros at the end": lambda data: data + bytes(300),
    "each line ends like on Windows": lambda data: data.replace(b"\n", b"\r\n"),
    "everything twice": lambda data: data + data,
    "the lines in reverse": lambda data: b"".join(reversed(lines(data))),
    "a mark of an editor at the start": lambda data: b"\xef\xbb\xbf" + data,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=list(DAMAGE))
async def test_it_opens_and_goes_on(
    tmp_path: Path, damage: Damage, errors_logged: list[str]
) -> None:
    settings = Settings(mode="full")
    async with (
        open_store(tmp_path / "data") as store,
        open_runtime(storage=store, models=script(*STEPS, *STEPS)) as runtime,
    ):
        talk = await runtime.create_conversation(directory=str(tmp_path), settings=settings)
        for prompt in ("one", "two"):
            await talk.run(prompt)
    file = tmp_path / "data" / "conversations" / talk.id / "main.jsonl"
    file.write_bytes(damage(file.read_bytes()))
    async with (
        open_store(tmp_path / "data") as store,
        open_runtime(storage=store, models=script(*STEPS, *STEPS)) as runtime,
    ):
        talk = await runtime.open_conversation(talk.id)
        await talk.configure(settings)
        result = await talk.run("three")
        assert (result.turn.state, result.text) == ("completed", "fine")
        assert (await calls(talk))[-1].state == "done"
    async with open_store(tmp_path / "data") as store, open_runtime(storage=store) as runtime:
        page = await (await runtime.open_conversation(talk.id)).items()
        assert [item.at for item in page.items] == sorted({item.at for item in page.items})
    assert errors_logged == []


@pytest.mark.parametrize("name", ["", "..", "../conversations", "a\0b", "blobs", "\ud800", "x/y"])
async def test_a_name_that_cannot_be_one_is_not_found(tmp_path: Path, name: str) -> None:
    async with open_store(tmp_path / "data") as store, open_runtime(storage=store) as runtime:
        with pytest.raises(NotFound):
            await runtime.open_conversation(name)
        with pytest.raises(NotFound):
            await runtime.delete_conversation(name)
        with pytest.raises(NotFound):
            await store.fork(name)
