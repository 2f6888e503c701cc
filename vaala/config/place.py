"""Where the entries of a YAML mapping or list stand in its text."""

from __future__ import annotations

from typing import cast

from msgspec import Struct
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode


class Entry(Struct, frozen=True):
    """A key with its value, or an item of a list."""

    step: str | int
    value: Node
    start: int
    """Where the key begins, or the item."""
    colon: int
    """Behind the colon, or behind the dash; an item between brackets has neither: its start."""

    def column(self, text: str) -> int:
        """Return the column in which further entries begin."""
        at = self.start if isinstance(self.step, str) else self.colon - 1
        return at - line_start(text, at)


def entries_of(text: str, node: Node | None) -> list[Entry]:
    """Return the entries of a mapping or list in their order; none of anything else."""
    match node:
        case MappingNode():
            pairs = cast("list[tuple[Node, Node]]", node.value)
            return [
                Entry(
                    _key(key),
                    value,
                    key.start_mark.index,
                    text.find(":", key.end_mark.index) + 1 or key.end_mark.index,
                )
                for key, value in pairs
            ]
        case SequenceNode():
            items = cast("list[Node]", node.value)
            flow = bool(node.flow_style)
            return [
                Entry(number, item, item.start_mark.index, _behind_dash(text, item, flow=flow))
                for number, item in enumerate(items)
            ]
        case _:
            return []


def _key(key: Node) -> str:
    return str(key.value) if isinstance(key, ScalarNode) else ""


def _behind_dash(text: str, item: Node, *, flow: bool) -> int:
    if flow:
        return cast("int", item.start_mark.index)
    return text.rfind("-", 0, item.start_mark.index) + 1


def end_of(text: str, entry: Entry) -> int:
    """Return where what an entry says ends: before comments and blank lines behind it."""
    node = entry.value
    start: int = node.start_mark.index
    end: int = node.end_mark.index
    if not getattr(node, "flow_style", True):
        return max((end_of(text, one) for one in entries_of(text, node)), default=entry.colon)
    if start == end:
        return entry.colon
    return start + len(text[start:end].rstrip())


def line_start(text: str, at: int) -> int:
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return where the line ends, before its line break."""
    end = text.find("\n", at)
    if end < 0:
        return len(text)
    return end - 1 if end > at and text[end - 1] == "\r" else end


def own_line(text: str, entry: Entry) -> bool:
    """Tell whether an entry has its lines for itself."""
    before = text[line_start(text, entry.start) : entry.start].strip()
    return before == ("" if isinstance(entry.step, str) else "-")
