"""Files that fail and crash as a seed says: to prove what storage promises."""

from vaala_storage.faults.faulty import Call, Fault, FaultyFiles, PowerCut
from vaala_storage.faults.memory import MemoryFiles

__all__ = ["Call", "Fault", "FaultyFiles", "MemoryFiles", "PowerCut"]
