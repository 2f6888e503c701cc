from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator

import pytest

from vaala.dao.opening import open_memory_store
from vaala.dao.store import Store


@pytest.fixture
async def memory_store() -> AsyncIterator[Store]:
    async with open_memory_store() as store:
        yield store


@pytest.fixture
def warnings_logged(caplog: pytest.LogCaptureFixture) -> Iterator[list[str]]:
    """The texts of what the code under test warned of."""
    texts: list[str] = []

    class Gather(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    handler = Gather(logging.WARNING)
    logging.getLogger("vaala.dao").addHandler(handler)
    yield texts
    logging.getLogger("vaala.dao").removeHandler(handler)
