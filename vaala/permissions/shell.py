"""What a shell command runs, read from its syntax tree.

tree-sitter's grammar of bash gives the tree. It is not bash itself, so a command is `sure` only
when every piece of its text is one that shells cannot read in two ways: words of plain characters,
quoted texts, and the operators between commands. All else (substitutions, assignments, loops,
redirections to files, errors) makes the whole unsure, and says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from msgspec import Struct

from vaala.permissions.limits import SHELL_COMMANDS_MAX, SHELL_TEXT_BYTES_MAX

if TYPE_CHECKING:
    from tree_sitter import Node

_PLAIN = re.compile(r"(?:[A-Za-z0-9_./:=@%+,~^*?\[\]#-]|[^\W\x00-\x7f]|\\[ -/:-@\[-`{-~])+")
"""An unquoted word: no character of it means anything to a shell, but for globs, a tilde and what
a backslash takes that meaning from."""
_GLOB = re.compile(r"(?<!\\)[*?\[]")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_RAW = re.compile(r"'[^']*'")
_QUOTED = re.compile(r'"(?:[^"\\$`]|\\.|\$[A-Za-z_][A-Za-z0-9_]*)*"', re.DOTALL)
_QUOTED_LITERAL = re.compile(r'(?:[^"\\$`]|\\.)*', re.DOTALL)
_QUOTED_ESCAPE = re.compile(r'\\([\\"$`])')
_VARIABLE = re.compile(r"\$[A-Za-z_][A-Za-z0-9_]*")
_REDIRECT = re.compile(r"(?:[0-9]|&)?>>? ?/dev/null|[0-9]?< ?/dev/null|[0-9]?>&[0-9-]", re.ASCII)
"""What neither writes nor reads a file."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_BETWEEN = frozenset({";", "&&", "||", "|", "|&", "\n", "comment"})
_GROUPS = frozenset({"program", "list", "pipeline", "negated_command"})
_RESERVED = frozenset(
    {
        "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac",
        "select", "in", "function", "time", "coproc", "{", "}", "[[", "]]", "!", "(", ")",
    }
)  # fmt: skip

_WHY = {
    "command_substitution": "it runs a command inside another ($(...) or backticks)",
    "process_substitution": "it runs a command inside another (<(...))",
    "variable_assignment": "it sets a variable",
    "variable_assignments": "it sets a variable",
    "declaration_command": "it sets a variable",
    "unset_command": "it unsets a variable",
    "subshell": "it has a group of commands",
    "compound_statement": "it has a group of commands",
    "function_definition": "it defines a function",
    "for_statement": "it has a loop",
    "c_style_for_statement": "it has a loop",
    "while_statement": "it has a loop",
    "if_statement": "it has a condition",
    "case_statement": "it has a condition",
    "test_command": "it has a condition",
    "heredoc_redirect": "it has a here-document",
    "herestring_redirect": "it has a here-string",
    "file_redirect": "it reads or writes a file with < or >",
    "expansion": "it has an expansion (${...})",
    "arithmetic_expansion": "it has an expansion ($((...)))",
    "brace_expression": "it has a brace expansion",
    "ansi_c_string": "it has a text with escapes ($'...')",
    "translated_string": 'it has a translated text ($"...")',
    "&": "a part of it goes on in the background",
}


class Word(Struct, frozen=True):
    """``text`` is what the program gets; None where only the shell will know. ``option`` tells
    whether it may begin with a dash, or be several words of which one does."""

    text: str | None
    option: bool

    @property
    def opaque(self) -> bool:
        return self.text is None


class SimpleCommand(Struct, frozen=True):
    """A program and what it is given; never empty."""

    words: tuple[Word, ...]

    @property
    def texts(self) -> tuple[str | None, ...]:
        return tuple(word.text for word in self.words)


class Script(Struct, frozen=True):
    """The simple commands of a shell command, in order.

    When ``unsure`` says why it may run other things as well, ``commands`` are those that could be
    read: good enough to deny by, never to allow.
    """

    commands: tuple[SimpleCommand, ...]
    unsure: str = ""

    @property
    def sure(self) -> bool:
        return not self.unsure


class _Unsure(Exception):
    """The text is not plainly one thing; says why."""


def read_script(text: str) -> Script:
    """Read a shell command. Pure; costs some 50 us, the first time also the loading of the
    grammar."""
    data = text.encode("utf-8", "replace")
    if len(data) > SHELL_TEXT_BYTES_MAX:
        return Script((), f"it is longer than {SHELL_TEXT_BYTES_MAX:,} bytes")
    root = _tree(data)
    commands = tuple(_found(root))[:SHELL_COMMANDS_MAX]
    try:
        if _CONTROL.search(text):
            raise _Unsure("it has control characters")
        sure = tuple(_commands(root))
        if not sure:
            raise _Unsure("it has no command")
        if len(sure) > SHELL_COMMANDS_MAX:
            raise _Unsure(f"it has more than {SHELL_COMMANDS_MAX} commands")
    except _Unsure as error:
        return Script(commands, str(error))
    return Script(sure)


def _tree(data: bytes) -> Node:
    # Here: most runs have no rule about commands. Their own import costs some 15 ms.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language())).parse(data).root_node


def _text(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def _why(node: Node) -> str:
    if node.type == "ERROR" or node.is_missing:
        return "its syntax is not understood"
    return _WHY.get(node.type, f"its syntax is not plain ({node.type})")


def _commands(node: Node) -> Iterator[SimpleCommand]:
    """Yield the commands of a node that is plain throughout; raises `_Unsure`."""
    if node.type in _GROUPS:
        _check_gaps(node, newlines=True)
        for child in node.children:
            if child.type not in _BETWEEN and child.type != "!":
                yield from _commands(child)
    elif node.type == "redirected_statement":
        _check_gaps(node, newlines=False)
        body, *redirects = node.children
        for redirect in redirects:
            if redirect.type != "file_redirect" or not _REDIRECT.fullmatch(_text(redirect)):
                raise _Unsure(_why(redirect))
        yield from _commands(body)
    elif node.type == "command":
        _check_gaps(node, newlines=False)
        yield _simple(node)
    else:
        raise _Unsure(_why(node))


def _check_gaps(node: Node, *, newlines: bool) -> None:
    """What stands between two children is blank: nothing of the text is in no piece."""
    text = node.text or b""
    blank = b" \t\n" if newlines else b" \t"
    start = end = node.start_byte
    for child in node.children:
        gap = text[end - start : child.start_byte - start]
        joined = child.type == "comment" and not gap and text[: end - start].strip(b" \t\n;&|")
        if gap.strip(blank) or joined:
            raise _Unsure("its syntax is not understood")
        end = child.end_byte
    if text[end - start :].strip(blank):
        raise _Unsure("its syntax is not understood")


def _simple(node: Node) -> SimpleCommand:
    words: list[Word] = []
    end = -1
    for child in node.children:
        if child.start_byte == end:  # two pieces that a shell reads as one word
            raise _Unsure("its syntax is not understood")
        end = child.end_byte
        if child.type == "file_redirect" and _REDIRECT.fullmatch(_text(child)):
            continue
        pieces = child.children if child.type == "command_name" else [child]
        if len(pieces) != 1:
            raise _Unsure(_why(child))
        words.append(_word(pieces[0]))
    program = words[0].text if words else None
    if program is None:
        raise _Unsure("which program it runs is not known before it runs")
    if program in _RESERVED or "=" in program:
        raise _Unsure("its syntax is not understood")
    return SimpleCommand(tuple(words))


def _word(node: Node) -> Word:
    pieces = node.children if node.type == "concatenation" else [node]
    value, known, splits = "", True, False
    for piece in pieces:
        literal, whole, split = _piece(piece)
        value += literal if known else ""
        known, splits = known and whole, splits or split
    if known:
        return Word(value, value.startswith("-"))
    return Word(None, splits or not value or value.startswith("-"))


def _piece(node: Node) -> tuple[str, bool, bool]:
    """Return how a piece of a word begins, whether that is all of it, and whether it may become
    several words."""
    raw = _text(node)
    match node.type:
        case "word" | "number" if _PLAIN.fullmatch(raw) and not raw.startswith("#"):
            glob = _GLOB.search(raw)
            return _ESCAPED.sub(r"\1", raw[: glob.start()] if glob else raw), glob is None, False
        case "raw_string" if _RAW.fullmatch(raw):
            return raw[1:-1], True, False
        case "string" if _QUOTED.fullmatch(raw):
            literal = _QUOTED_LITERAL.match(raw, 1)
            text = "" if literal is None else literal[0]
            return _QUOTED_ESCAPE.sub(r"\1", text), len(text) == len(raw) - 2, False
        case "simple_expansion" if _VARIABLE.fullmatch(raw):
            return "", False, True
        case "word" | "number" | "string" | "raw_string" | "simple_expansion":
            raise _Unsure(f"a part of it means something to the shell: {raw[:40]}")
        case _:
            raise _Unsure(_why(node))


def _found(node: Node) -> Iterator[SimpleCommand]:
    """Yield what looks like a command anywhere in the tree."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        waiting += reversed(one.children)
        if one.type != "command":
            continue
        words = []
        for child in one.children:
            inner = child.children[0] if child.type == "command_name" and child.children else child
            if inner.type in ("variable_assignment", "file_redirect"):
                continue
            try:
                words.append(_word(inner))
            except _Unsure:
                words.append(Word(None, True))
        if words:
            yield SimpleCommand(tuple(words))
