"""`Notes`: what goes on besides the answer, one short line each, on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from vaala.tools.text import clean_line
from vaala_protocol.calls import CommandDetails
from vaala_protocol.content import text_of
from vaala_protocol.items import CommandEnd, Item, ModelError, Notice, ToolCall

NOTE_CHARS_MAX = 160
LINE_CHARS_MAX = 2000
DIM, PLAIN = "\x1b[2m", "\x1b[0m"


class Notes:
    """Turns items into lines, each once. ``put`` gets whole lines."""

    def __init__(self, put: Callable[[str], None], *, dim: bool) -> None:
        self._put = put
        self._dim = dim
        self._told: set[tuple[str, str]] = set()

    def line(self, text: str, chars_max: int = LINE_CHARS_MAX) -> None:
        text = clean_line(text, chars_max)
        self._put(f"{DIM}{text}{PLAIN}\n" if self._dim else f"{text}\n")

    def item(self, item: Item, *, child: bool = False) -> None:
        """Tell what there is to tell of an item that appeared or changed."""
        indent = "  " if child else ""
        match item:
            case ToolCall():
                self._call(item, indent)
            case ModelError() if item.retry_in_ms is not None:
                wait_s = item.retry_in_ms / 1000
                self._once(item, "", f"{indent}model: {item.message}; again in {wait_s:.0f} s")
            case Notice():
                self._once(item, "", f"{indent}{item.level}: {item.text}")
            case CommandEnd():
                self._once(item, "", f"{indent}ended: {item.command}: {_ended(item)}")
            case _:
                pass

    def skip(self, item: Item) -> None:
        """Count an item as told: it is from before this run."""
        self._told.update(((item.id, ""), (item.id, "begin"), (item.id, "end")))

    def _call(self, call: ToolCall, indent: str) -> None:
        title = call.title or call.name
        if call.state == "running":
            self._once(call, "begin", f"{indent}> {title}")
        elif call.state not in ("waiting", "done"):
            self._once(call, "end", f"{indent}! {title}: {_failure(call)}")
        elif call.state == "done":
            self._once(call, "begin", f"{indent}> {title}")
            if (code := _exit_code(call)) not in (None, 0):
                self._once(call, "end", f"{indent}! {title}: exit code {code}")

    def _once(self, item: Item, moment: str, text: str) -> None:
        if (item.id, moment) not in self._told:
            self._told.add((item.id, moment))
            self.line(text, NOTE_CHARS_MAX)


def wants_dim() -> bool:
    """Follow no-color.org: nothing but a terminal, and nobody who asked for none."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and _can_dim()


def _can_dim() -> bool:
    return os.environ.get("TERM", "dumb") != "dumb"


def _failure(call: ToolCall) -> str:
    reason = call.reason or text_of(call.result).strip().partition("\n")[0]
    return f"{call.state}: {reason}" if reason else call.state


def _exit_code(call: ToolCall) -> int | None:
    return call.details.exit_code if isinstance(call.details, CommandDetails) else None


def _ended(item: CommandEnd) -> str:
    if item.lost:
        return "lost"
    return f"signal {item.signal}" if item.signal is not None else f"exit code {item.exit_code}"
