from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture
def errors_logged() -> Iterator[list[str]]:
    """The texts of the errors that the server has logged."""
    texts: list[str] = []

    class Gather(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())

    handler = Gather(logging.ERROR)
    logging.getLogger("vaala").addHandler(handler)
    yield texts
    logging.getLogger("vaala").removeHandler(handler)
