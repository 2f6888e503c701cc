"""Stores in memory: for conversations that have no first message yet, for embedding, for tests."""

from vaala_storage.staged.handover import hand_over
from vaala_storage.staged.storage import StagedStorage

__all__ = ["StagedStorage", "hand_over"]
