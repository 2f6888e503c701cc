"""The bytes that the stores of one `StagedStorage` may hold together."""

from __future__ import annotations

from vaala_storage.errors import StorageFull


class Budget:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._used = 0

    def change(self, size: int) -> None:
        """Take ``size`` bytes, or give them back when negative; raises `StorageFull`."""
        if size > 0 and self._used + size > self._bytes_max:
            raise StorageFull(
                f"the store in memory holds {self._used} of at most {self._bytes_max} bytes, "
                f"{size} more do not fit; delete something or allow it more"
            )
        self._used += size

    @property
    def used(self) -> int:
        return self._used
