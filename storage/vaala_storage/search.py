"""`SearchIndex`: full-text search over documents. A cache: it can always be built again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct


class Document(Struct, frozen=True):
    """``fields`` are declared texts; ``group`` is what several documents belong to."""

    id: str
    group: str
    fields: Mapping[str, str]


class Hit(Struct, frozen=True):
    id: str
    group: str
    field: str
    snippet: str
    """Text around the match, at most 160 characters, cut at character borders."""
    score: float
    """Higher is better; comparable within one query only."""


class HitPage(Struct, frozen=True):
    hits: tuple[Hit, ...]
    cursor: str | None


class SearchIndex(ABC):
    """Words match without regard to case and accents; the text of a query has no syntax.

    Every word of the query must occur in the document, the last one as a beginning. A word is what
    stands between spaces; its parts must follow each other (``node.js`` is "node" then "js").
    Runs of CJK characters match inside longer runs, from one character on.
    """

    @abstractmethod
    async def put(self, documents: Iterable[Document]) -> None:
        """Add documents, replacing those with the same id."""

    @abstractmethod
    async def delete(self, ids: Sequence[str]) -> None:
        """Remove documents; no error for those that are not there."""

    @abstractmethod
    async def delete_group(self, group: str) -> None:
        """Remove every document of a group; no error when there is none."""

    @abstractmethod
    async def query(
        self,
        text: str,
        *,
        groups: Sequence[str] | None = None,
        cursor: str | None = None,
        limit: int = 20,
    ) -> HitPage:
        """Return the best hit of each matching document, best first; nothing for blank text.

        An implementation may rank bounded parts of many matches one after the other. Raises
        ``ValueError`` for what is no cursor and for a limit below 1.
        """
