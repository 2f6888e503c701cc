"""From the bytes of a command to text that is safe in a log, a request and a terminal.

`TextCleaner` works on a stream, `clean` on a whole. What a terminal would obey is taken out:
escape sequences, window titles and clipboard writes (OSC) among them. NUL becomes "␀", since it
separates names in much output; bidirectional controls, which can make text read as what it is
not, become ``\\u202e`` and the like; the other controls but tab, newline and carriage return
vanish.
"""

from __future__ import annotations

import codecs
import re
from enum import Enum, auto

CONTROL_STRING_CHARACTERS_MAX = 128 * 1024
"""A title or clipboard text is shorter; a longer one is the text of a broken program again."""


class State(Enum):
    """Where we are in ECMA-48's grammar; it is kept from one piece to the next."""

    TEXT = auto()
    ESCAPE = auto()  # after ESC
    SEQUENCE = auto()  # in a CSI sequence: parameters, then a final character
    STRING = auto()  # in OSC, DCS, SOS, PM or APC, until BEL or ST
    STRING_ESCAPE = auto()  # in a string, after ESC: a backslash makes it ST


# In text: what must be looked at. C1 controls come as characters U+0080 to U+009F.
SPECIAL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
# ESC, intermediates, final. A control inside breaks off the sequence and is read again.
ESCAPE_END = re.compile("[^\x20-\x2f]")
SEQUENCE_END = re.compile("[^\x20-\x3f]")
# Newline too: no real string has one, and output must never vanish for more than a line.
STRING_END = re.compile("[\x07\x18\x1a\x1b\x9c\n]")
STRING_STARTS = "]PX^_\x9d\x90\x98\x9e\x9f"
BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class TextCleaner:
    """Decodes UTF-8 with replacement and cleans; characters and sequences may be cut anywhere.

    A lone carriage return is kept: it means "this line begins again", see `fold_lines`.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._state = State.TEXT
        self._string_length = 0

    def feed(self, data: bytes) -> str:
        return self._clean(self._decoder.decode(data))

    def finish(self) -> str:
        """Return what a cut character at the very end becomes."""
        return self._clean(self._decoder.decode(b"", final=True))

    def _clean(self, text: str) -> str:
        if self._state is State.TEXT and SPECIAL.search(text) is None:
            return text
        kept: list[str] = []
        at = 0
        while at < len(text):
            match self._state:
                case State.TEXT:
                    at = self._text(text, at, kept)
                case State.ESCAPE:
                    at = self._escape(text, at)
                case State.SEQUENCE:
                    at = self._sequence(text, at)
                case State.STRING:
                    at = self._string(text, at)
                case State.STRING_ESCAPE:
                    at = self._string_escape(text, at)
        return "".join(kept)

    def _text(self, text: str, at: int, kept: list[str]) -> int:
        found = SPECIAL.search(text, at)
        if found is None:
            kept.append(text[at:])
            return len(text)
        kept.append(text[at : found.start()])
        character = found.group()
        if character == "\x1b":
            self._state = State.ESCAPE
        elif character == "\x9b":
            self._state = State.SEQUENCE
        elif character in STRING_STARTS:
            self._begin_string()
        elif character == "\0":
            kept.append("␀")
        elif character in BIDIRECTIONAL:
            kept.append(f"\\u{ord(character):04x}")
        return found.end()

    def _escape(self, text: str, at: int) -> int:
        character = text[at]
        if character == "[":
            self._state = State.SEQUENCE
            return at + 1
        if character in STRING_STARTS:
            self._begin_string()
            return at + 1
        return self._until(ESCAPE_END, text, at)

    def _sequence(self, text: str, at: int) -> int:
        return self._until(SEQUENCE_END, text, at)

    def _until(self, end: re.Pattern[str], text: str, at: int) -> int:
        """Skip to the final character and over it; anything that is none is text again."""
        found = end.search(text, at)
        if found is None:
            return len(text)
        self._state = State.TEXT
        return found.end() if "\x30" <= found.group() <= "\x7e" else found.start()

    def _begin_string(self) -> None:
        self._state = State.STRING
        self._string_length = 0

    def _string(self, text: str, at: int) -> int:
        found = STRING_END.search(text, at)
        end = len(text) if found is None else found.start()
        self._string_length += end - at
        if self._string_length > CONTROL_STRING_CHARACTERS_MAX:
            self._state = State.TEXT
            return end
        if found is None:
            return end
        self._state = State.STRING_ESCAPE if found.group() == "\x1b" else State.TEXT
        return found.start() if found.group() == "\n" else found.end()

    def _string_escape(self, text: str, at: int) -> int:
        if text[at] == "\\":
            self._state = State.TEXT
            return at + 1
        self._state = State.ESCAPE  # the string was broken off by another sequence
        return at


def fold_lines(text: str) -> str:
    """Return the lines as a terminal would leave them, as far as progress displays go.

    CR LF is a line end. Of a line that began again after a carriage return the last version
    stands. Only for cleaned text.
    """
    if "\r" not in text:
        return text
    return "\n".join(map(_last_version, text.replace("\r\n", "\n").split("\n")))


def _last_version(line: str) -> str:
    versions = line.split("\r")
    return next((version for version in reversed(versions) if version.strip()), versions[-1])


def clean(data: bytes) -> str:
    """Return the clean, folded text of a whole output."""
    cleaner = TextCleaner()
    return fold_lines(cleaner.feed(data) + cleaner.finish())
