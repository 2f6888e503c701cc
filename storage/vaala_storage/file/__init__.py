"""Logs and blobs as plain files."""

from vaala_storage.file.blobs import FileBlobs, open_file_blobs
from vaala_storage.file.log import FileLog, open_file_log

__all__ = ["FileBlobs", "FileLog", "open_file_blobs", "open_file_log"]
