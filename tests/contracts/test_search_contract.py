"""What every `SearchIndex` does."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from tests.contracts.record_stores import SEARCH_INDEXES
from vaala_storage.search import Document, Hit, SearchIndex


@pytest.fixture(params=sorted(SEARCH_INDEXES))
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[SearchIndex]:
    async with SEARCH_INDEXES[request.param](tmp_path) as opened:
        yield opened


def doc(name: str, text: str = "", *, title: str = "", group: str = "g") -> Document:
    fields = {key: value for key, value in (("title", title), ("text", text)) if value}
    return Document(name, group, fields)


async def hits(
    index: SearchIndex, text: str, *, groups: Sequence[str] | None = None, limit: int = 20
) -> list[Hit]:
    found: list[Hit] = []
    cursor: str | None = None
    while True:
        page = await index.query(text, groups=groups, cursor=cursor, limit=limit)
        assert len(page.hits) <= limit
        found += page.hits
        cursor = page.cursor
        if cursor is None:
            return found


async def found(index: SearchIndex, text: str) -> set[str]:
    return {hit.id for hit in await hits(index, text)}


async def test_every_word_must_occur_and_the_last_is_a_beginning(index: SearchIndex) -> None:
    await index.put([doc("1", "the quick brown fox"), doc("2", "the quick"), doc("3", "browning")])
    assert await found(index, "quick the") == {"1", "2"}
    assert await found(index, "quick brown") == {"1"}
    assert await found(index, "brow") == {"1", "3"}
    assert await found(index, "brow quick") == set()
    assert await found(index, "rown") == set()


async def test_case_accents_and_width_make_no_difference(index: SearchIndex) -> None:
    texts = ["Crème BRÛLÉE", "creme brulee", "cre\u0300me bru\u0302le\u0301e", "ＣＲＥＭＥ brûlée"]
    await index.put([doc(str(number), text) for number, text in enumerate(texts)])
    for text in texts:
        assert await found(index, text) == {"0", "1", "2", "3"}


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Straße", "STRASSE"),
        ("İstanbul", "istanbul"),
        ("ΟΔΟΣ", "οδος"),
        ("ﬁle", "file"),
        ("soft\u00adhyphen", "softhyphen"),
        ("Ёлка", "елка"),
        ("한글", "\u1112\u1161\u11ab\u1100\u1173\u11af"),
        ("ガイド", "ｶﾞｲﾄﾞ"),
    ],
)
async def test_the_same_text_written_otherwise_is_found(
    index: SearchIndex, text: str, query: str
) -> None:
    await index.put([doc("1", f"before {text} after")])
    assert await found(index, query) == {"1"}
    await index.put([doc("1", f"before {query} after")])
    assert await found(index, text) == {"1"}


async def test_voiced_kana_are_other_letters(index: SearchIndex) -> None:
    await index.put([doc("1", "かき")])
    assert await found(index, "がき") == set()


async def test_chinese_is_found_inside_longer_runs(index: SearchIndex) -> None:  # I8-2
    await index.put([doc("1", "数据库连接池超时"), doc("2", "连数接据")])
    for query in ("数据库", "连接", "数", "时", "超时", "数据库连接池超时"):
        assert "1" in await found(index, query)
    assert await found(index, "数") == await found(index, "据") == {"1", "2"}
    assert await found(index, "数库") == set()
    assert await found(index, "超时 数据") == {"1"}


async def test_scripts_may_touch(index: SearchIndex) -> None:
    await index.put([doc("1", "我用Python写代码，真好"), doc("2", "ภาษาไทย と カタカナ")])
    for query in ("用Python", "Python写", "用Python写代", "python", "用Pyth", "写 用", "代码，真"):
        assert await found(index, query) == {"1"}, query
    assert await found(index, "用写") == set()
    assert await found(index, "代码真") == set()
    assert await found(index, "ไทย") == await found(index, "タカ") == {"2"}


HARMLESS = ["don't", "GB/s", "node.js", "blue-116", "a:b", "AND", '"x']
SYNTAX = ["*", "", " ", "NEAR(", "^a", "-x", "(", "text:", "{a b}:c", "'", '"', "\x00", "a\x00b"]


async def test_the_text_of_a_query_has_no_syntax(index: SearchIndex) -> None:  # I8-1
    for query in HARMLESS:
        assert await found(index, query) == set()
    await index.put([doc(query, f"so {query} it is") for query in HARMLESS])
    for query in HARMLESS:
        assert await found(index, query) == {query}


@pytest.mark.parametrize("query", [*SYNTAX, "\ud800", "🎉", "x" * 100_000, "a " * 50_000])
async def test_no_query_is_an_error(index: SearchIndex, query: str) -> None:  # I8-1
    await index.put([doc("1", "nothing of that kind")])
    await index.query(query)


@pytest.mark.parametrize("query", ["", "  \n", "*", "...", "🎉"])
async def test_a_query_without_words_finds_nothing(index: SearchIndex, query: str) -> None:
    await index.put([doc("1", "some text * ... 🎉")])
    page = await index.query(query)
    assert (page.hits, page.cursor) == ((), None)


async def test_the_parts_of_a_word_must_follow_each_other(index: SearchIndex) -> None:
    await index.put([doc("1", "node.js is here"), doc("2", "js on a node"), doc("3", "node js")])
    assert await found(index, "node.js") == {"1", "3"}
    assert await found(index, "node js") == {"1", "2", "3"}


async def test_no_word_reaches_from_a_field_into_the_next(index: SearchIndex) -> None:
    await index.put([doc("1", "js", title="node")])
    assert await found(index, "node.js") == set()
    assert await found(index, "js node") == {"1"}


async def test_long_tokens_are_found_by_their_beginning(index: SearchIndex) -> None:
    token = "".join("abcdefghij"[number % 10] for number in range(300))
    await index.put([doc("1", f"see {token} there")])
    assert await found(index, token) == await found(index, token[:70]) == {"1"}
    assert await found(index, f"{token} there") == {"1"}
    assert await found(index, token[1:]) == set()


async def test_a_hit_names_the_field_and_shows_the_text_around_it(index: SearchIndex) -> None:
    text = f"{'lorem ipsum ' * 30}the Crème\nbrûlée burned {'dolor sit ' * 30}"
    await index.put([doc("1", text, title="Kitchen", group="c7")])
    [hit] = await hits(index, "creme brulee")
    assert (hit.id, hit.group, hit.field) == ("1", "c7", "text")
    assert "the Crème\nbrûlée burned" in hit.snippet
    assert hit.snippet in text
    assert 100 < len(hit.snippet) <= 160
    [hit] = await hits(index, "kitchen")
    assert (hit.field, hit.snippet) == ("title", "Kitchen")


async def test_a_snippet_is_cut_between_characters(index: SearchIndex) -> None:
    family = "👩\u200d👩\u200d👧"
    await index.put([doc("1", family * 60 + " match " + family * 60)])
    [hit] = await hits(index, "match")
    assert hit.snippet.strip(family).strip() == "match"
    before, after = hit.snippet.split(" match ")
    assert before.replace(family, "") == after.replace(family, "") == ""


async def test_a_snippet_begins_with_a_whole_word(index: SearchIndex) -> None:
    await index.put([doc("1", "extraordinary " * 60 + "match " + "extraordinary " * 60)])
    [hit] = await hits(index, "match")
    assert hit.snippet.startswith("extraordinary ")
    assert "match" in hit.snippet


async def test_better_matches_come_first(index: SearchIndex) -> None:
    await index.put(
        [
            doc("long", f"apple {'word ' * 200}"),
            doc("title", title="apple"),
            doc("often", "apple apple apple pie"),
        ]
    )
    found = await hits(index, "apple")
    assert found[-1].id == "long"
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


async def test_groups_bound_the_search(index: SearchIndex) -> None:
    await index.put([doc(str(number), "apple", group=f"g{number % 4}") for number in range(12)])
    assert {hit.id for hit in await hits(index, "apple", groups=["g1", "none"])} == {"1", "5", "9"}
    assert len(await hits(index, "apple", groups=["g0", "g3"], limit=2)) == 6
    assert await hits(index, "apple", groups=[]) == []
    assert await hits(index, "apple", groups=["none"]) == []


async def test_pages_show_each_match_once(index: SearchIndex) -> None:
    await index.put([doc(str(number), "apple " * (1 + number % 3)) for number in range(25)])
    ids = [hit.id for hit in await hits(index, "apple", limit=4)]
    assert sorted(ids) == sorted(str(number) for number in range(25))


async def test_a_put_replaces_and_a_delete_removes(index: SearchIndex) -> None:
    await index.put([doc("1", "old words"), doc("2", "old too")])
    await index.put([doc("1", "new words")])
    assert await found(index, "old") == {"2"}
    assert await found(index, "new") == {"1"}
    await index.put([doc("1", "new words", group="moved")])
    assert [hit.group for hit in await hits(index, "new")] == ["moved"]
    await index.delete(["1", "never there"])
    assert await found(index, "new") == set()


async def test_a_group_is_deleted_whole(index: SearchIndex) -> None:
    await index.put([doc("1", "a", group="x"), doc("2", "a", group="x"), doc("3", "a", group="y")])
    await index.delete_group("x")
    await index.delete_group("never there")
    assert await found(index, "a") == {"3"}


async def test_strange_texts_are_indexed(index: SearchIndex) -> None:
    await index.put(
        [doc("1", "half \ud83d pair\x00 word \x1b[31m"), doc("2"), doc("3", "e" + "\u0301" * 5000)]
    )
    assert await found(index, "pair") == await found(index, "word") == {"1"}
    assert await found(index, "é") == {"3"}


@pytest.mark.parametrize("cursor", ["", "x", "e30", "W10"])
async def test_a_made_up_cursor_is_refused(index: SearchIndex, cursor: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        await index.query("a", cursor=cursor)


async def test_a_page_of_nothing_is_refused(index: SearchIndex) -> None:
    with pytest.raises(ValueError, match="limit"):
        await index.query("a", limit=0)
