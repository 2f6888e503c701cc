"""The loop guard: a turn that repeats a failing call is ended, with a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from vaala import limits
from vaala_protocol.content import text_of
from vaala_protocol.items import ToolCall


class LoopGuard:
    """Counts failures in a row. A call that succeeds ends the row of its tool.

    Polls that succeed never count, however often they repeat; the step budget bounds those.
    """

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, ...]] = Counter()

    def note(self, calls: Iterable[ToolCall]) -> str | None:
        """Take the calls of a finished step; return why the turn must end, or None."""
        for call in calls:
            if call.state == "done":
                for key in [key for key in self._failures if key[0] == call.name]:
                    del self._failures[key]
            elif call.state == "error" and (times := self._count(call)):
                return f"{call.name} failed {times} times in the same way"
        return None

    def _count(self, call: ToolCall) -> int:
        """Count a failure; return how often it came when that is too often, else 0."""
        error = text_of(call.result)
        bounds = {
            (call.name, call.arguments, error): limits.IDENTICAL_FAILURES_MAX,
            (call.name, error): limits.SIMILAR_FAILURES_MAX,
        }
        self._failures.update(bounds.keys())
        return max(
            (self._failures[key] for key, most in bounds.items() if self._failures[key] >= most),
            default=0,
        )
