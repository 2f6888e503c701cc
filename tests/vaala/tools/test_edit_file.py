"""``edit_file``: exact, unique, and nothing else in the file changes."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from tests.vaala.tools.calling import Caller
from vaala.tools import limits
from vaala.tools.encoding import Binary, decode
from vaala.tools.line_ends import LfView, to_lf
from vaala.tools.matching import apply, find
from vaala_protocol.calls import FileChangeDetails


class File:
    """The file ``a.txt``, seen from outside of the tools."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, data: bytes) -> None:
        self.path.write_bytes(data)

    def get(self) -> bytes:
        return self.path.read_bytes()


@pytest.fixture
def file(directory: Path) -> File:
    return File(directory / "a.txt")


async def edit(caller: Caller, file: File, data: bytes, old: str, new: str, **more: bool) -> bytes:
    file.put(data)
    await caller.call("read_file", path="a.txt")
    await caller.call("edit_file", path="a.txt", old_text=old, new_text=new, **more)
    return file.get()


async def refused(caller: Caller, file: File, data: bytes, old: str, new: str) -> str:
    file.put(data)
    await caller.call("read_file", path="a.txt")
    text = await caller.failure("edit_file", path="a.txt", old_text=old, new_text=new)
    assert file.get() == data
    return text


@pytest.mark.parametrize(
    ("data", "old", "new", "expected"),
    [
        (b"a\r\nb\r\nc\r\n", "b", "B", b"a\r\nB\r\nc\r\n"),  # E2-1
        (b"a\r\nb\r\nc\r\n", "a\nb\n", "a\nB\nx\n", b"a\r\nB\r\nx\r\nc\r\n"),
        (b"a\r\nb\r\nc\r\n", "a\r\nb\r\n", "A\r\nb\r\n", b"A\r\nb\r\nc\r\n"),
        (b"a\nb\r\nc\n", "a\nb\nc", "a\nB\nc", b"a\nB\r\nc\n"),  # each line keeps its own
        (b"a\nb\r\nc\n", "b\nc", "b\nc2\nd", b"a\nb\r\nc2\nd\n"),
        (b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        (b"ab", "a", "a\n", b"a\nb"),
        (b"a\r\nb\r\n", "a\nb", "ab", b"ab\r\n"),
        (b"a\r\nb", "\n", "", b"ab"),
        (b"\xef\xbb\xbfone\ntwo\n", "one", "ONE", b"\xef\xbb\xbfONE\ntwo\n"),  # E2-2
        (b"a\nb\nc", "b", "B", b"a\nB\nc"),  # E2-3: no newline at the end before, none after
        (b"a\nb\nc", "c", "c\nd\n", b"a\nb\nc\nd\n"),
        (b"a\nb\nc", "c\n", "c\nd\n", b"a\nb\nc\nd"),
        ("a\u2028b\x0cc\nd".encode(), "b\x0cc", "X", "a\u2028X\nd".encode()),  # E2-5
        (b"\tx = 1\n", "\tx = 1", "\tx = 2", b"\tx = 2\n"),
        (
            'g = "hi"\ng = “hi”\n'.encode(),
            'g = "hi"',
            "g = 1",
            "g = 1\ng = “hi”\n".encode(),
        ),  # E3-1
        ("\ufeffeins\r\n数".encode("utf-16-le"), "eins", "é", "\ufeffé\r\n数".encode("utf-16-le")),
    ],
)
async def test_only_the_matched_part_changes(
    caller: Caller, file: File, data: bytes, old: str, new: str, expected: bytes
) -> None:
    assert await edit(caller, file, data, old, new) == expected


async def test_several_places_are_named(caller: Caller, file: File) -> None:  # E3-2
    text = await refused(caller, file, b"x\nfoo\ny\nfoo foo\n", "foo", "bar")
    assert "occurs 3 times" in text
    assert "lines 2, 4, 4" in text
    text = await refused(caller, file, b"x\n" * 100, "x", "y")
    assert "occurs 100 times" in text
    assert f"{limits.EDIT_PLACES_NAMED_MAX} and 90 more" in text


async def test_places_that_overlap_are_not_unique(caller: Caller, file: File) -> None:
    assert "occurs 2 times" in await refused(caller, file, b"aaa", "aa", "b")


async def test_replace_all(caller: Caller, file: File) -> None:
    data = b"foo\r\nx foo\nfoo"
    assert await edit(caller, file, data, "foo", "b\nb", replace_all=True) == (
        b"b\r\nb\r\nx b\nb\nb\nb"
    )
    assert await edit(caller, file, b"aaaa", "aa", "b", replace_all=True) == b"bb"


@pytest.mark.parametrize("new", ["x", ""])
async def test_an_empty_old_text(caller: Caller, file: File, new: str) -> None:  # E3-3
    assert "old_text is empty" in await refused(caller, file, b"a", "", new)


@pytest.mark.parametrize(("old", "new"), [("a", "a"), ("a\r\nb", "a\nb")])
async def test_nothing_would_change(caller: Caller, file: File, old: str, new: str) -> None:  # E3-3
    assert "are the same" in await refused(caller, file, b"a\nb", old, new)


async def test_white_space_that_differs_is_named(caller: Caller, file: File) -> None:  # E2-4
    data = b"def f():\n\tif x:\n\t\treturn 1\n"
    text = await refused(caller, file, data, "    if x:\n        return 1", "pass")
    assert "differs only in white space" in text
    assert "lines 2-3" in text
    assert "\tif x:\n\t\treturn 1" in text


async def test_the_nearest_place_is_shown(caller: Caller, file: File) -> None:
    data = b"\n".join(b"filler number %d" % n for n in range(200)) + b"\nreturn compute(a, b)\n"
    text = await refused(caller, file, data, "return compute(a, c)", "x")
    assert "nearest place is line 201" in text
    assert "return compute(a, b)" in text
    assert "Nothing in the file is like it" in await refused(caller, file, data, "@@@@@", "x")


async def test_a_miss_in_a_large_file_is_answered_soon(caller: Caller, file: File) -> None:
    data = b"".join(b"value_%d = compute(%d, %d)\n" % (n, n, n) for n in range(19_000))
    with trio.fail_after(10):
        assert "nearest place" in await refused(caller, file, data, "value_x = compute(7, 8)", "y")


async def test_what_cannot_be_edited(caller: Caller, file: File, directory: Path) -> None:
    assert "does not exist" in await caller.failure(
        "edit_file", path="none", old_text="a", new_text="b"
    )
    (directory / "d").mkdir()
    assert "is a directory" in await caller.failure(
        "edit_file", path="d", old_text="a", new_text="b"
    )


async def test_an_edit_that_would_grow_without_bound(caller: Caller, file: File) -> None:
    file.put(b"a" * 50_000)
    await caller.call("read_file", path="a.txt")
    big = {"old_text": "a", "new_text": "b" * 10_000, "replace_all": True}
    assert "would become larger" in await caller.failure("edit_file", path="a.txt", **big)


async def test_bytes_of_an_unknown_encoding_stay(caller: Caller, file: File) -> None:  # E5-2
    accents = "é".encode("latin-1") * 300
    data = accents + b"\nname = 1\n" + accents
    assert await edit(caller, file, data, "name = 1", "name = 2") == (
        accents + b"\nname = 2\n" + accents
    )
    assert await edit(caller, file, b"\xe9 a", "é a", "é b") == b"\xe9 b"
    text = await refused(caller, file, data, "name = 1", "name = “2”")
    assert "not UTF-8" in text
    assert "“" in text
    assert "ü" in await refused(caller, file, data, "name = 1", "ü")


async def test_the_result_has_a_diff(caller: Caller, file: File) -> None:
    file.put(b"".join(b"%d\r\n" % n for n in range(1, 10)) + b"10")
    await caller.call("read_file", path="a.txt")
    result = await caller.call("edit_file", path="a.txt", old_text="5\n6", new_text="5\n\x1bsix")
    assert isinstance(result.details, FileChangeDetails)
    (change,) = result.details.changes
    assert change.change == "edit"
    assert change.diff == (
        "--- a/a.txt\n+++ b/a.txt\n@@ -3,7 +3,7 @@\n 3\n 4\n 5\n-6\n+␛six\n 7\n 8\n 9"
    )


async def test_an_executable_stays_one_and_a_link_a_link(  # E5-1
    caller: Caller, file: File, directory: Path
) -> None:
    file.put(b"#!/bin/sh\n")
    file.path.chmod(0o755)
    (directory / "link").symlink_to("a.txt")
    await caller.call("read_file", path="link")
    await caller.call("edit_file", path="link", old_text="sh", new_text="bash")
    assert file.get() == b"#!/bin/bash\n"
    assert file.path.stat().st_mode & 0o777 == 0o755
    assert (directory / "link").is_symlink()


async def test_edits_of_one_file_in_one_step(caller: Caller, file: File) -> None:
    names = [f"name{n:02}" for n in range(12)]
    file.put("\n".join(names).encode())
    await caller.call("read_file", path="a.txt")
    async with trio.open_nursery() as nursery:
        for name in names:

            async def one(name: str = name) -> None:
                await caller.call("edit_file", path="a.txt", old_text=name, new_text=name.upper())

            nursery.start_soon(one)
    assert file.get() == "\n".join(names).upper().encode()


TEXTS = st.text(alphabet="ab\r\n\t é数", max_size=30)


@given(data=st.binary(max_size=200) | TEXTS.map(str.encode))
def test_what_is_text_gives_its_bytes_back(data: bytes) -> None:
    decoded = decode(data)
    if not isinstance(decoded, Binary):
        assert decoded.encode(decoded.text) == data


@given(before=TEXTS, old=TEXTS.filter(bool), new=TEXTS, after=TEXTS)
def test_an_edit_is_a_replacement_that_keeps_line_ends(
    before: str, old: str, new: str, after: str
) -> None:
    """Seen with LF it is a plain replacement; what lies outside of it keeps every character."""
    original = before + old + after
    view = LfView(original)
    change = find(view, to_lf(old), new)
    if not change.at:
        # A CR before the old text and an LF at its start are one line end of the file.
        assert "\r\n" in original
        return
    at = change.at[0]
    made = apply(view, type(change)(change.old, change.new, (at,)))
    assert to_lf(made) == to_lf(view.text[:at] + change.new + view.text[at + len(change.old) :])
    head = view.original[: view.place(at)]
    tail = view.original[view.place(at + len(change.old)) :]
    assert made.startswith(head)
    assert made.endswith(tail)
