"""A conversation's directory is its name: nothing inside repeats it."""

from __future__ import annotations

from pathlib import Path

import vaala
from vaala.models.scripted import ScriptedModel
from vaala_protocol.settings import Settings


async def test_no_entry_holds_the_id_of_its_conversation(tmp_path: Path) -> None:
    spawn = {"tool": "spawn_agent", "arguments": {"task": "help"}, "as": "child"}
    model = ScriptedModel(
        {"steps": [{"when": 'prompt | match "help"', "then": [{"say": "I help."}],
                    "else": [{"call": spawn}, {"say": "Done."}]}]}
    )  # fmt: skip
    async with (
        vaala.open_store(tmp_path / "data") as store,
        vaala.open_runtime(models=model, storage=store) as runtime,
    ):
        talk = await runtime.create_conversation(
            directory=str(tmp_path), settings=Settings(mode="full")
        )
        await talk.run("go")
        conversation = await runtime.conversation(talk.id)
        parents = {session.info.parent for session in conversation.sessions.values()}
        assert parents == {None, talk.id}
    streams = list((tmp_path / "data" / "conversations" / talk.id).glob("*.jsonl"))
    assert len(streams) == 3
    assert [one.name for one in streams if talk.id in one.read_text()] == []
