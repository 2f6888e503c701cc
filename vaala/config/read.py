"""Reads the files of the configuration and checks each against its schema."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from msgspec import Struct
from pydantic import BaseModel

from vaala.config.check import check
from vaala.config.document import Document, parse_document, read_file
from vaala.config.errors import ConfigError, Problem

M = TypeVar("M", bound=BaseModel)


class Checked(Struct, Generic[M], frozen=True):
    """A file that keeps to its schema."""

    document: Document
    values: M


class Reader:
    """Reads the files of one directory and gathers what is wrong in any of them.

    ``instead`` is read in place of what is in the files that it names: an edit is checked before
    it is made.
    """

    def __init__(self, directory: Path, instead: Mapping[str, bytes]) -> None:
        self.problems: list[Problem] = []
        self._directory = directory
        self._instead = instead

    def read(self, name: str, schema: type[M]) -> Checked[M] | None:
        """Return a file; one that is not there is empty. None: ``problems`` says why."""
        file = self._directory / name
        try:
            content = self._instead.get(name)
            document = parse_document(file, read_file(file) if content is None else content)
            return Checked(document, check(document, schema))
        except ConfigError as error:
            self.problems.extend(error.problems)
            return None
