"""Storage: logs, records, blobs and search behind narrow interfaces.

The implementations are imported from their own modules (`vaala_storage.file` and its siblings), so
that a program loads only what it uses.
"""

from vaala_storage.blobs import BlobStorage, BlobWriter
from vaala_storage.errors import (
    AlreadyExists,
    Conflict,
    NotFound,
    ReadOnly,
    StorageCorrupt,
    StorageError,
    StorageFailed,
    StorageFull,
    StreamBroken,
    TooLarge,
)
from vaala_storage.log import Damage, Entry, LogStorage, Page, PathPage, Stored
from vaala_storage.records import ALL, Namespace, Query, Record, RecordPage, RecordStorage, Scalar
from vaala_storage.search import Document, Hit, HitPage, SearchIndex

__all__ = [
    "ALL",
    "AlreadyExists",
    "BlobStorage",
    "BlobWriter",
    "Conflict",
    "Damage",
    "Document",
    "Entry",
    "Hit",
    "HitPage",
    "LogStorage",
    "Namespace",
    "NotFound",
    "Page",
    "PathPage",
    "Query",
    "ReadOnly",
    "Record",
    "RecordPage",
    "RecordStorage",
    "Scalar",
    "SearchIndex",
    "StorageCorrupt",
    "StorageError",
    "StorageFailed",
    "StorageFull",
    "Stored",
    "StreamBroken",
    "TooLarge",
]
