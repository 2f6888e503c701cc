"""Changing one value in the text of a file: every other character stays."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from vaala.config.document import parse_document
from vaala.config.yaml_text import Unchangeable, Way, change

TEXT = """\
# head
a:   # one
  b: "x"   # two
  c: [1, 2]

  # before d
  d: |
    text
    more

# before e
e:
- 1  # uno
- k: v
  l: w

# end
f:  # eff
g: {x: 1, y: z,}
"""
TABLE = [
    (("a", "b"), "new", '  b: "x"   # two', "  b: new   # two"),
    (("a", "b"), "no: way", '  b: "x"   # two', '  b: "no: way"   # two'),
    (("a", "b"), "true", '  b: "x"   # two', '  b: "true"   # two'),
    (("a", "b"), "two\nlines", '  b: "x"   # two', '  b: "two\\nlines"   # two'),
    (("a", "b"), "http://x:1/v1", '  b: "x"   # two', "  b: http://x:1/v1   # two"),
    (("a", "b"), None, '  b: "x"   # two\n', ""),
    (("a", "c"), ["q", True], "[1, 2]", "[q, true]"),
    (("a", "c", 0), None, "[1, 2]", "[2]"),
    (("a", "c", 1), None, "[1, 2]", "[1]"),
    (("a", "c", 2), 3.5, "[1, 2]", "[1, 2, 3.5]"),
    (("a", "d"), "short", "|\n    text\n    more\n", "short\n"),
    (("a", "d"), None, "  d: |\n    text\n    more\n", ""),
    (("a", "z", "y"), {"n": 1}, "    more\n", "    more\n  z:\n    y:\n      n: 1\n"),
    (("e",), [], "e:\n- 1  # uno\n- k: v\n  l: w\n", "e: []\n"),
    (("e", 0), None, "- 1  # uno\n", ""),
    (("e", 1, "k"), None, "- k: v\n  l: w", "- l: w"),
    (("e", 1, "m"), 1, "  l: w\n", "  l: w\n  m: 1\n"),
    (("e", 2), "last", "  l: w\n", "  l: w\n- last\n"),
    (("f",), False, "f:  # eff", "f: false  # eff"),
    (("f", "q"), 1, "f:  # eff\n", "f:  # eff\n  q: 1\n"),
    (("g", "x"), None, "{x: 1, y: z,}", "{y: z,}"),
    (("g", "w"), "v", "{x: 1, y: z,}", "{x: 1, y: z, w: v}"),
    (("h",), 1, "g: {x: 1, y: z,}\n", "g: {x: 1, y: z,}\nh: 1\n"),
]  # fmt: skip


@pytest.mark.parametrize(("way", "value", "before", "after"), TABLE)
def test_one_place_changes(way: Way, value: Any, before: str, after: str) -> None:
    assert TEXT.count(before) == 1
    assert change(TEXT, way, value) == TEXT.replace(before, after)


@pytest.mark.parametrize("way", [("zz",), ("a", "zz"), ("zz", "y"), ("e", 2)])
def test_to_take_out_what_is_not_there_changes_nothing(way: Way) -> None:
    assert change(TEXT, way, None) == TEXT


@pytest.mark.parametrize(
    ("text", "way", "value", "after"),
    [
        ("", ("a", "b"), 1, "a:\n  b: 1\n"),
        ("# only", ("a",), 1, "# only\na: 1\n"),
        ("---\n", ("a",), 1, "---\na: 1\n"),
        ("{}\n", ("a", "b"), 1, "{a: {b: 1}}\n"),
        ("a:\n  b: 1\n", ("a", "b"), None, "a: {}\n"),
        ("a:\n  # why\n  b: 1\nc: 2\n", ("a", "b"), None, "a: {}\n  # why\nc: 2\n"),
        ("a: 1", ("b",), 2, "a: 1\nb: 2\n"),
        ("a: 1\r\nb: 2\r\n", ("a",), 3, "a: 3\r\nb: 2\r\n"),
        ("a: 1\r\n", ("b", "c"), 3, "a: 1\r\nb:\r\n  c: 3\r\n"),
        ("a: 1\n", ("a",), None, ""),
        ("ä: ö  # ü\n", ("ä",), "é", 'ä: "é"  # ü\n'),
    ],
)
def test_beginnings_and_ends(text: str, way: Way, value: Any, after: str) -> None:
    assert change(text, way, value) == after


@pytest.mark.parametrize(
    ("text", "way", "why"),
    [
        ("a: &x {k: 1}\nb: *x\n", ("b", "k"), "without touching other values"),
        ("a: text\n", ("a", "b"), "no mapping or list above"),
        ("a: [1]\n", ("a", 5), "no place 5: the list has 1"),
        ("a: [1]\n", ("a", "b"), "is no number"),
        ("a: 1\n", (), "name a key"),
    ],
)
def test_what_cannot_be_changed_is_refused(text: str, way: Way, why: str) -> None:
    with pytest.raises(Unchangeable, match=why):
        change(text, way, 2)


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(10**6), 10**6),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8),
    st.sampled_from(
        ["yes", "null", "~", "1e3", "0x1F", "a: b", "- a", "# c", "'", "{", "2001-01-01"]
    ),
)
KEYS = st.sampled_from(["a", "b-c", "d.e", "yes", "k1"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)


def _written(values: dict[str, Any], indent: str, styles: st.DataObject) -> str:
    """Write a mapping with a comment above and behind each entry, each in a style of its own."""
    from vaala.config.render import flow

    lines = []
    for key, value in values.items():
        number = styles.draw(st.integers(0, 10**9))
        lines.append(f"{indent}# above {number}")
        shown = flow(key)
        if isinstance(value, dict) and value and styles.draw(st.booleans()):
            lines.append(f"{indent}{shown}:  # at {number}")
            lines.append(_written(value, indent + "   ", styles).rstrip("\n"))
        elif isinstance(value, list) and value and styles.draw(st.booleans()):
            lines.append(f"{indent}{shown}:")
            lines += [f"{indent}- {flow(one)}  # at {number}" for one in value]
        else:
            lines.append(f"{indent}{shown}: {flow(value)}  # at {number}")
    return "\n".join(lines) + "\n"


def _ways(values: Any) -> list[Way]:
    """All ways into the values, and one to a new key of each mapping."""
    ways: list[Way] = []
    entries = values.items() if isinstance(values, dict) else enumerate(values)
    for step, value in entries:
        ways.append((step,))
        if isinstance(value, dict | list):
            ways += [(step, *rest) for rest in _ways(value)]
    return [*ways, ("new",)] if isinstance(values, dict) else ways


@settings(max_examples=40)
@given(DOCUMENTS, VALUES | st.none(), st.data())
def test_any_change_says_what_was_wanted_and_keeps_all_comments(
    values: dict[str, Any], value: Any, data: st.DataObject
) -> None:
    text = _written(values, "", data)
    assert _plain(text) == values
    way = data.draw(st.sampled_from(_ways(values)))
    after = change(text, way, value)
    assert repr(_plain(after)) == repr(_wanted(values, way, value))
    node: Any = values
    for step in way[:-1]:
        node = node[step]
    old = node.get(way[-1]) if isinstance(node, dict) else None
    assume(not isinstance(old, dict | list))  # what stood inside it goes with it
    above = re.compile(r"# above \d+")
    assert set(above.findall(text)) == set(above.findall(after))


def _plain(text: str) -> Any:
    return parse_document(Path(), text.encode()).values


def _wanted(values: Any, way: Way, value: Any) -> Any:
    step, rest = way[0], way[1:]
    copy: Any = dict(values) if isinstance(values, dict) else list(values)
    if rest:
        copy[step] = _wanted(copy[step], rest, value)
    elif value is not None:
        copy[step] = value
    elif isinstance(values, dict):
        copy.pop(step, None)
    else:
        del copy[step]
    return copy
