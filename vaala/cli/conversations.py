"""Finding the conversation that a person means."""

from __future__ import annotations

from vaala.cli.exits import USAGE, CommandFailed
from vaala.interface import Catalog
from vaala_protocol.ids import is_id
from vaala_protocol.pages import ListQuery

PAGE = 500
_ALL = ListQuery(order="created", archived=None)


async def find_id(catalog: Catalog, text: str) -> str:
    """Return the id that ``text`` is, or is the only beginning of; raises `CommandFailed`.

    Ids sort by time, so that what was made lately is found first.
    """
    wanted = text.strip().lower()
    if is_id(wanted):
        return wanted
    if not wanted or not set(wanted) <= set("0123456789abcdef-"):
        raise CommandFailed(f"{text!r} is no id of a conversation; see `vaala list`", USAGE)
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await catalog.list(_ALL, cursor, PAGE)
        found += [row.id for row in page.rows if row.id.startswith(wanted)]
        cursor = page.cursor
        older = page.rows and page.rows[-1].id[: len(wanted)] < wanted
        if cursor is None or older:
            return _only(text, found)


async def newest_id(catalog: Catalog, directory: str) -> str:
    """Return the conversation of a directory that was used last; raises `CommandFailed`."""
    page = await catalog.list(ListQuery(directory=directory), None, 1)
    if not page.rows:
        raise CommandFailed(
            f"no conversation in {directory} yet; leave out --continue to begin one", USAGE
        )
    return page.rows[0].id


def _only(text: str, found: list[str]) -> str:
    if not found:
        raise CommandFailed(f"no conversation {text!r}; see `vaala list`", USAGE)
    if len(found) > 1:
        some = ", ".join(found[:3]) + (", …" if len(found) > 3 else "")
        raise CommandFailed(f"{text!r} is the beginning of several ids: {some}", USAGE)
    return found[0]
