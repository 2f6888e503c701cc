"""Times, ids and texts as people read them."""

from __future__ import annotations

from datetime import datetime

from vaala.tools.text import clean_line
from vaala_protocol.state import ConversationInfo

SHORT_ID_CHARS = 13
"""The first two groups of an id: its time to the millisecond."""


def local_time(at_ms: int) -> str:
    """Return a time in milliseconds since the epoch as local date and time, to the minute."""
    return datetime.fromtimestamp(at_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M")


def short_ids(ids: list[str]) -> dict[str, str]:
    """Return for each id a beginning that no other of them has."""
    short: dict[str, str] = {}
    for one in ids:
        length = SHORT_ID_CHARS
        while any(other != one and other.startswith(one[:length]) for other in ids):
            length += 1
        short[one] = one[:length]
    return short


def title_of(info: ConversationInfo, chars_max: int = 60) -> str:
    return clean_line(info.title or "(no title)", chars_max)


def directory_of(info: ConversationInfo) -> str:
    return clean_line(info.locations[0].directory, 200) if info.locations else ""
