"""Changes one value in the text of a YAML file and leaves every other character as it is.

A round trip through a YAML library loses the comments behind a key that goes, and the widths of
what stays. So the library only tells where things stand, and the text is changed there. Whatever
comes out is read again: it must say what was wanted and nothing else, or the change is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from vaala.config.document import parse_document
from vaala.config.errors import ConfigError
from vaala.config.place import Entry, end_of, entries_of, line_end, line_start, own_line
from vaala.config.render import block, flow

Way: TypeAlias = tuple[str | int, ...]
_INDENT = "  "


class Unchangeable(Exception):
    """The value cannot be changed in the text; says why, for people."""


def change(text: str, way: Way, value: Any) -> str:
    """Return ``text`` with the value at ``way`` set; None takes the key out.

    What is not there yet is added behind the last key of its section. Raises `Unchangeable`, and
    `ConfigError` for a text that is no YAML.
    """
    if not way:
        raise Unchangeable("name a key")
    before = parse_document(Path(), text.encode()).values
    wanted = _changed(before, way, value)
    if repr(wanted) == repr(before):
        return text
    root = cast("Node | None", YAML(typ="rt").compose(text))
    after = _remove(text, root, way) if value is None else _put(text, root, way, value)
    try:
        found = parse_document(Path(), after.encode()).values
    except ConfigError:
        found = None
    if repr(found) != repr(wanted):
        text = "cannot be changed without touching other values: edit the file by hand"
        raise Unchangeable(text)
    return after


def _changed(values: Any, way: Sequence[str | int], value: Any) -> Any:
    """Return the plain values as they are wanted."""
    if not way:
        return value
    step, rest = way[0], way[1:]
    match values, step:
        case dict() | None, str():
            old: dict[Any, Any] = dict(values or {})
            if value is None and (step not in old or not rest):
                old.pop(step, None)
                return old if values is not None else None
            return {**old, step: _changed(old.get(step), rest, value)}
        case list(), int() if 0 <= step <= len(values):
            items = list(values)
            if value is None and (step == len(items) or not rest):
                return items[:step] + items[step + 1 :]
            items[step : step + 1] = [
                _changed(items[step] if step < len(items) else None, rest, value)
            ]
            return items
        case list(), int():
            raise Unchangeable(f"there is no place {step}: the list has {len(values)}")
        case list(), _:
            raise Unchangeable(f"{step!r} is no number, and a list stands there")
        case _:
            raise Unchangeable(f"{step!r} cannot stand there: there is no mapping or list above it")


def _put(text: str, root: Node | None, way: Way, value: Any) -> str:
    """Replace the value where there is one; else add the part of the way that is missing."""
    node, entry = root, None
    for depth, step in enumerate(way):
        found = next((one for one in entries_of(text, node) if one.step == step), None)
        if found is None:
            rest = _nested(way[depth + 1 :], value)
            return _add(text, node, entry, step, rest)
        node, entry = found.value, found
    assert entry is not None
    return _replace(text, entry, flow(value))


def _nested(way: Way, value: Any) -> Any:
    for step in reversed(way):
        value = {step: value} if isinstance(step, str) else [value]
    return value


def _replace(text: str, entry: Entry, shown: str) -> str:
    """Put ``shown`` in place of a value; a comment behind its key stays."""
    node = entry.value
    start, end = node.start_mark.index, end_of(text, entry)
    if start == end or line_end(text, entry.colon) < start:
        # Nothing stands there, or it begins on a later line.
        tail = text[entry.colon : line_end(text, entry.colon)] if start != end else ""
        return f"{text[: entry.colon]} {shown}{tail}{text[max(end, entry.colon) :]}"
    return text[:start] + shown + text[end:]


def _add(text: str, node: Node | None, entry: Entry | None, step: str | int, value: Any) -> str:
    newline = "\r\n" if "\r\n" in text else "\n"
    entries = entries_of(text, node)
    if node is not None and getattr(node, "flow_style", None):
        return _add_to_flow(text, node, step, value)
    if entries:
        first, last = entries[0], entries[-1]
        column = first.column(text)
        place = line_end(text, end_of(text, last))
    elif entry is not None:  # a key without a value
        column = entry.column(text) + len(_INDENT)
        place = line_end(text, entry.colon)
    else:
        column, place = 0, len(text.rstrip())
        place = line_end(text, place)
    lines = block(step, value, " " * column)
    before = text[:place]
    joint = newline if before and not before.endswith("\n") else ""
    end = "" if text[place:] else newline
    return before + joint + newline.join(lines) + end + text[place:]


def _add_to_flow(text: str, node: Node, step: str | int, value: Any) -> str:
    inside = node.end_mark.index - 1
    so_far = text[node.start_mark.index + 1 : inside].rstrip()
    separator = "" if not so_far else " " if so_far.endswith(",") else ", "
    shown = flow(value) if isinstance(step, int) else f"{flow(step)}: {flow(value)}"
    return text[:inside].rstrip(" ") + separator + shown + text[inside:]


def _remove(text: str, root: Node | None, way: Way) -> str:
    node, above = root, None
    for step in way[:-1]:
        above = next(one for one in entries_of(text, node) if one.step == step)
        node = above.value
    entries = entries_of(text, node)
    number = next(number for number, one in enumerate(entries) if one.step == way[-1])
    entry = entries[number]
    empty = "{}" if isinstance(node, MappingNode) else "[]"
    if own_line(text, entry):
        start, end = line_start(text, entry.start), line_end(text, end_of(text, entry))
        after = text[end:].removeprefix("\r").removeprefix("\n")
        if len(entries) == 1 and above is not None:
            head = text[: above.colon] + f" {empty}" + text[above.colon : start]
            return head + after
        return text[:start] + after
    if len(entries) == 1:
        if above is None or not isinstance(node, MappingNode | SequenceNode):
            return empty
        return _replace(text, above, empty)
    if number + 1 < len(entries):
        return text[: entry.start] + text[entries[number + 1].start :]
    return text[: end_of(text, entries[number - 1])] + text[end_of(text, entry) :]
