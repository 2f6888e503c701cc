"""A store whose index cannot be opened: only lists and search are without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.vaala.dao.conversing import begin, say
from vaala.dao.data_dir import DataDir
from vaala.dao.store import open_store
from vaala_protocol.errors import Unreadable


async def test_conversations_are_made_and_opened_without_an_index(
    tmp_path: Path,
) -> None:  # G3-3
    DataDir(tmp_path).metadata_db.mkdir()  # as bad as a full disk, and for root, too
    async with open_store(tmp_path) as store:
        log, session = await begin(store)
        await say(session, "written all the same")
        await log.close()
        again = await store.open(log.id)
        assert again.record.title == "written all the same"
        await say(await again.open_session(log.id), "and more")
        await again.close()
        assert await store.get(log.id) is None
        with pytest.raises(Unreadable, match="the index is unavailable"):
            await store.list()
        with pytest.raises(Unreadable, match="the index is unavailable"):
            await store.search("written")
