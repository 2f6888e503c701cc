"""`StagedStorage`: all four stores in memory, within one budget."""

from __future__ import annotations

from collections.abc import Sequence

from vaala_storage.records import Namespace
from vaala_storage.staged.blobs import StagedBlobs
from vaala_storage.staged.budget import Budget
from vaala_storage.staged.limits import STAGED_BYTES_MAX
from vaala_storage.staged.log import StagedLog
from vaala_storage.staged.records import StagedRecords
from vaala_storage.staged.search import StagedSearch


class StagedStorage:
    """Keeps to the same rules as the stores on disk, but nothing outlives the object.

    All stores together hold up to ``bytes_max`` bytes and raise `StorageFull` beyond. It belongs
    to one trio run. Lists and searches look at everything that is there: meant for thousands of
    records, not millions.
    """

    def __init__(
        self, *, namespaces: Sequence[Namespace] = (), bytes_max: int = STAGED_BYTES_MAX
    ) -> None:
        self._budget = Budget(bytes_max)
        self.log = StagedLog(self._budget)
        self.records = StagedRecords(self._budget, namespaces)
        self.blobs = StagedBlobs(self._budget)
        self.search = StagedSearch(self._budget)

    @property
    def bytes_used(self) -> int:
        """What the stores hold, counted as JSON, text and bytes with a share for each value."""
        return self._budget.used
