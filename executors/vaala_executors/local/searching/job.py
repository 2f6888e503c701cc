"""One search from question to answers."""

from __future__ import annotations

import json
import os
import re
import resource
import sys
from collections.abc import Callable, Iterator

from . import query as kinds
from .alarm import Alarm, TimeUp
from .globs import matcher
from .query import Query, decode
from .scan import is_binary, matching_lines, open_file
from .walk import walk


class Job:
    """Counts what is spent, and says what was left out and why."""

    def __init__(self, query: Query, alarm: Alarm, say: Callable[..., None]) -> None:
        self._query = query
        self._alarm = alarm
        self._say = say
        self._limits = query.limits
        self._files = 0
        self._bytes = 0
        self._matches = 0
        self._cut_files = 0
        self._unreadable: list[str] = []

    def run(self) -> None:
        try:
            regex = self._regex()
            chosen = matcher(self._query.glob) if self._query.glob else None
        except (re.error, ValueError, RecursionError, OverflowError, MemoryError) as error:
            self._say(kinds.BAD_PATTERN, f"{type(error).__name__}: {error}")
            return
        for path in self._files_within_budget(chosen):
            if regex is None:
                self._match(path, None, "")
            else:
                self._search(path, regex)
            if self._matches > self._limits.matches:
                self._leave_out(f"only the first {self._limits.matches} matches are given")
                break
            if self._alarm.late:
                self._leave_out(f"the time of {self._limits.seconds} s was up in {path!r}")
                break
        self._tell_what_is_missing()
        self._say(kinds.DONE)

    def _regex(self) -> re.Pattern[str] | None:
        pattern = self._query.pattern
        if pattern is None:
            return None
        flags = re.IGNORECASE if self._query.ignore_case else 0
        return re.compile(re.escape(pattern) if self._query.literal else pattern, flags)

    def _files_within_budget(self, chosen: Callable[[str], bool] | None) -> Iterator[str]:
        root = self._query.root
        base = root if os.path.isdir(root) else os.path.dirname(root)
        cut = len(base.rstrip("/")) + 1
        for path in walk(root, self._unreadable):
            self._files += 1
            if self._files > self._limits.files:
                self._leave_out(f"only the first {self._limits.files} files were looked at")
                return
            if self._bytes >= self._limits.bytes:
                self._leave_out(f"only the first {self._limits.bytes} bytes were searched")
                return
            if self._alarm.late:
                self._leave_out(f"the time of {self._limits.seconds} s was up at {path!r}")
                return
            if chosen is None or chosen(path[cut:]):
                yield path

    def _search(self, path: str, regex: re.Pattern[str]) -> None:
        budget = min(self._limits.file_bytes, self._limits.bytes - self._bytes)
        try:
            with open_file(path) as file:
                if is_binary(file):
                    return
                size = os.fstat(file.fileno()).st_size
                self._bytes += min(size, budget)
                self._cut_files += size > budget
                lines = matching_lines(file, regex, budget)
                while self._matches <= self._limits.matches:
                    with self._alarm.interrupting():
                        found = next(lines, None)
                    if found is None:
                        return
                    self._match(path, *found)
        except OSError:
            self._unreadable.append(path)
        except TimeUp:
            return  # told by the caller, who sees that the alarm is late

    def _match(self, path: str, line: int | None, text: str) -> None:
        self._matches += 1
        if self._matches <= self._limits.matches:
            self._say(kinds.MATCH, path, line, text)

    def _leave_out(self, note: str) -> None:
        self._say(kinds.TRUNCATED)
        self._say(kinds.NOTE, note)

    def _tell_what_is_missing(self) -> None:
        if self._cut_files:
            self._leave_out(
                f"of {self._cut_files} large files only the first {self._limits.file_bytes} bytes"
                " were searched"
            )
        if self._unreadable:
            first = self._unreadable[0]
            self._say(kinds.NOTE, f"{len(self._unreadable)} could not be read, such as {first!r}")


def main() -> None:
    """Answer the query that is the last argument."""
    query = decode(sys.argv[-1])
    memory = query.limits.memory_bytes
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    def say(*answer: object) -> None:
        # Flushed at once: what was found counts even if this process is killed.
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()

    Job(query, Alarm(query.limits.seconds), say).run()
