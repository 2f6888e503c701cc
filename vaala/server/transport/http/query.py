"""What stands behind the question mark of a request, checked."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qsl

from vaala.server.transport import limits
from vaala_protocol.errors import BadRequest


class Query:
    """The parameters of one request; each may be given once."""

    def __init__(self, text: str, known: Collection[str]) -> None:
        """Raises `BadRequest` for a parameter that is not known, or is given twice."""
        self._given: dict[str, str] = {}
        for name, value in parse_qsl(text, keep_blank_values=True, errors="replace"):
            if name not in known:
                there = ", ".join(sorted(known)) or "none"
                raise BadRequest(f"no parameter {name[:80]!r} here; there are: {there}")
            if name in self._given:
                raise BadRequest(f"the parameter {name} is given twice")
            self._given[name] = value

    def text(self, name: str) -> str | None:
        return self._given.get(name)

    def number(self, name: str) -> int | None:
        """Return a whole number from zero on; raises `BadRequest`."""
        value = self._given.get(name)
        if value is None:
            return None
        if not (value.isascii() and value.isdigit() and len(value) <= 15):
            raise BadRequest(f"{name} must be a whole number, not {value[:80]!r}")
        return int(value)

    def limit(self) -> int:
        """Return how many rows to give; raises `BadRequest` for none or too many."""
        given = self.number("limit")
        if given is None:
            return limits.VIEW_ROWS_DEFAULT
        if not 1 <= given <= limits.VIEW_ROWS_MAX:
            raise BadRequest(f"limit must be 1 to {limits.VIEW_ROWS_MAX}, not {given}")
        return given

    def flag(self, name: str) -> bool | None:
        """Return true or false, None when it is not given; raises `BadRequest`."""
        value = self._given.get(name)
        if value not in (None, "true", "false"):
            raise BadRequest(f"{name} must be true or false, not {value[:80]!r}")
        return None if value is None else value == "true"
