"""Executors: environments with a file system and a shell, and what runs in them.

The implementations are imported from their own modules (`vaala_executors.local`), so that a program
loads only what it uses.
"""

from vaala_executors.errors import (
    BadPattern,
    ExecutorError,
    ExecutorLost,
    FileDenied,
    FileExists,
    FileFailed,
    FileFull,
    FileMissing,
    FileProblem,
    FileTooLarge,
    NotADirectory,
    NotAFile,
    OutsideWorkspace,
    PathMoved,
    StartFailed,
)
from vaala_executors.output import CutOutput, OutputCapture, Sink
from vaala_executors.process import Command, Exit, Process
from vaala_executors.text import TextCleaner, clean, fold_lines
from vaala_executors.workspace import (
    DirEntry,
    Executor,
    FileStat,
    Match,
    Place,
    SearchQuery,
    SearchResult,
    WholeFile,
    Workspace,
)

__all__ = [
    "BadPattern",
    "Command",
    "CutOutput",
    "DirEntry",
    "Executor",
    "ExecutorError",
    "ExecutorLost",
    "Exit",
    "FileDenied",
    "FileExists",
    "FileFailed",
    "FileFull",
    "FileMissing",
    "FileProblem",
    "FileStat",
    "FileTooLarge",
    "Match",
    "NotADirectory",
    "NotAFile",
    "OutputCapture",
    "OutsideWorkspace",
    "PathMoved",
    "Place",
    "Process",
    "SearchQuery",
    "SearchResult",
    "Sink",
    "StartFailed",
    "TextCleaner",
    "WholeFile",
    "Workspace",
    "clean",
    "fold_lines",
]
