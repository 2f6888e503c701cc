"""The newest bytes of an output: what is kept, and where it stands in the whole."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from vaala.text import whole_characters
from vaala.tools.output_window import OutputWindow


@given(
    st.lists(st.binary(max_size=50), max_size=60),
    st.integers(min_value=0, max_value=3_100),
    st.integers(min_value=1, max_value=200),
)
def test_it_reads_like_the_whole_output_from_where_it_begins(
    pieces: list[bytes], offset: int, length: int
) -> None:
    window = OutputWindow(300)
    for piece in pieces:
        window.add(piece)
    whole = b"".join(pieces)
    assert window.total == len(whole)
    assert len(whole) - window.start >= min(len(whole), 300)
    found = window.read(offset, length)
    begin = min(max(offset, window.start), len(whole))
    assert (found.offset, found.data) == (begin, whole[begin : begin + length])


def test_what_it_keeps_is_bounded_whatever_comes() -> None:
    random = Random(1)
    window = OutputWindow(10_000)
    for _ in range(2_000):
        window.add(bytes(random.choice((1, 10, 3_000, 30_000))))
        assert window.total - window.start < 10_000 + 10_000  # and one piece more
    window.clear()
    assert window.start == window.total
    assert window.read(0, 10).data == b""
    window.add(b"more")
    assert window.read(0, 10).data == b"more"


@given(st.text(), st.integers(min_value=0, max_value=40))
def test_a_piece_ends_between_characters(text: str, end: int) -> None:
    data = text.encode("utf-8", "replace")[:end]
    whole = whole_characters(data)
    assert whole == data.decode("utf-8", "ignore").encode()
    assert len(data) - len(whole) <= 3


@given(st.binary(max_size=20))
def test_what_is_no_text_loses_at_most_a_begun_character(data: bytes) -> None:
    whole = whole_characters(data)
    assert data.startswith(whole)
    assert len(data) - len(whole) <= 3
