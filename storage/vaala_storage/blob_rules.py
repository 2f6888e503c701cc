"""What every `BlobStorage` must agree on: ranges, and when a writer may still be used."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager


def check_range(offset: int, length: int | None) -> None:
    """Raise ``ValueError`` for a range that could not be one of any blob."""
    if offset < 0 or (length is not None and length < 0):
        raise ValueError(f"offset={offset}, length={length}: a range cannot be negative")


class WriterState:
    """Whether a `BlobWriter` may be used, which one call at a time asks.

    A call that failed or was cancelled may have written a part, so that what is committed after
    it would not be what the caller wrote.
    """

    def __init__(self, label: str) -> None:
        self._label = label
        self._usable = True
        self.committed = False

    @contextmanager
    def writing(self) -> Generator[None]:
        """Make the writer unusable unless the body comes to its end; raises ``ValueError``."""
        if not self._usable:
            state = "has been committed" if self.committed else "was given up"
            raise ValueError(f"{self._label}: the blob {state}")
        self._usable = False
        yield
        self._usable = True

    @contextmanager
    def committing(self) -> Generator[None]:
        """Like `writing`; nothing may follow."""
        with self.writing():
            yield
        self._usable = False
        self.committed = True
