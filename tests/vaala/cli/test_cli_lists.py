"""`list`, `show`, `search`, `delete`, `export`, `import` and `reindex` on real conversations."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Script = Callable[[str], str]
Vaala = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("way")


@pytest.fixture
def talk(vaala: Vaala, script: Script) -> Callable[[str], str]:
    """Have a conversation that answers with its prompt; return its id."""
    model = script(
        "  - call: {tool: list_dir, arguments: {path: .}, as: files}\n"
        '  - say: "You said {{ prompt }}"\n'
    )

    def talk_about(prompt: str) -> str:
        done = vaala("run", "--json", "--model", model, prompt)
        assert done.code == 0
        (snapshot,) = [line["snapshot"] for line in done.lines if "snapshot" in line]
        conversation_id: str = snapshot["conversation"]["id"]
        return conversation_id

    return talk_about


Talk = Callable[[str], str]


def test_an_empty_data_directory_is_listed_and_searched_without_being_made(
    vaala: Vaala, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    for words in (["list"], ["search", "x"]):
        done = vaala(*words, "--data-dir", str(data))
        assert (done.code, done.err) == (0, "")
    assert not data.exists()


def test_list_shows_the_newest_first_with_title_time_and_directory(
    vaala: Vaala, talk: Talk, isolated: Path
) -> None:
    first, second = talk("about apples"), talk("about pears")
    lines = vaala("list").out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [second[:13], first[:13]]
    assert [line.split("  ")[2:] for line in lines] == [
        ["about pears", str(isolated)],
        ["about apples", str(isolated)],
    ]


def test_list_as_json(vaala: Vaala, talk: Talk, isolated: Path) -> None:
    conversation_id = talk("about apples")
    (row,) = vaala("list", "--json").lines
    assert row["id"] == conversation_id
    assert (row["title"], row["turns"]) == ("about apples", 1)
    assert row["locations"] == [{"executor": "local", "directory": str(isolated)}]


def test_list_takes_a_limit_and_a_directory(vaala: Vaala, talk: Talk, tmp_path: Path) -> None:
    for number in range(3):
        talk(f"number {number}")
    done = vaala("list", "--limit", "2")
    assert (done.out.count("number"), done.err) == (2, "(the newest 2; more with --limit)\n")
    assert "no conversations in" in vaala("list", "--cwd", str(tmp_path)).out


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1001", "²"])
def test_a_limit_that_is_none(vaala: Vaala, limit: str) -> None:
    done = vaala("list", f"--limit={limit}")
    assert (done.code, done.err) == (
        2, f"vaala: --limit {limit}: expected a number from 1 to 1000\n",
    )  # fmt: skip


def test_show_prints_the_transcript(vaala: Vaala, talk: Talk) -> None:
    conversation_id = talk("about apples")
    shown = vaala("show", conversation_id[:13]).out
    assert shown.index("--- you, ") < shown.index("about apples\n\n> List .")
    assert shown.count("--- agent, ") == 1
    assert shown.endswith("\nYou said about apples\n")


def test_show_as_json_has_every_item_whole(vaala: Vaala, talk: Talk) -> None:
    items = vaala("show", "--json", talk("about apples")).lines
    calls = [item for item in items if item["kind"] == "tool_call"]
    assert [(call["name"], call["state"]) for call in calls] == [("list_dir", "done")]
    assert items[0]["content"] == [{"type": "text", "text": "about apples"}]
    assert items[-1]["text"] == "You said about apples"
    assert not any("private" in item for item in items)


def test_search_finds_words_in_titles_and_messages(vaala: Vaala, talk: Talk) -> None:
    apples = talk("about apples")
    talk("about pears")
    found = vaala("search", "apples").out
    assert apples[:13] in found
    assert "pears" not in found
    assert vaala("search", "--json", "said", "apples").lines[0]["conversation"]["id"] == apples
    assert vaala("search", "plums").out == "nothing found for 'plums'\n"


def test_delete_removes_a_conversation_for_good(vaala: Vaala, talk: Talk) -> None:
    kept, gone = talk("kept"), talk("gone")
    done = vaala("delete", "--yes", gone)
    assert (done.code, done.err) == (0, f"deleted {gone}\n")
    assert [row["id"] for row in vaala("list", "--json").lines] == [kept]
    assert vaala("show", gone).code == 2


def test_delete_without_a_person_needs_yes(vaala: Vaala, talk: Talk) -> None:
    conversation_id = talk("kept")
    done = vaala("delete", conversation_id)
    assert (done.code, done.err) == (2, "vaala: nobody can be asked: confirm with --yes\n")
    assert len(vaala("list", "--json").lines) == 1


def test_an_archive_becomes_a_second_conversation(vaala: Vaala, talk: Talk, tmp_path: Path) -> None:
    first = talk("about apples")
    archive = tmp_path / "a.tar.gz"
    assert vaala("export", first, str(archive)).code == 0
    with tarfile.open(archive) as opened:
        assert "manifest.json" in opened.getnames()
    second = vaala("import", str(archive)).out.strip()
    assert second != first
    kinds = [
        [item["kind"] for item in vaala("show", "--json", one).lines] for one in (first, second)
    ]
    assert kinds[0] == kinds[1] != []


def test_an_imported_conversation_asks_where_it_works(
    vaala: Vaala, talk: Talk, tmp_path: Path
) -> None:
    vaala("export", talk("about apples"), str(tmp_path / "a"))
    imported = vaala("import", str(tmp_path / "a")).out.strip()
    way_out = f"(vaala run --conversation {imported} --cwd DIR)\n"
    for words in (["--conversation", imported], ["--continue"]):
        done = vaala("run", *words, "more")
        assert (done.code, done.err.endswith(way_out)) == (2, True)
    done = vaala("run", "--conversation", imported, "--cwd", str(tmp_path), "more")
    assert (done.code, done.out) == (0, "You said more\n")


def test_export_names_its_file_and_overwrites_none(vaala: Vaala, talk: Talk) -> None:
    conversation_id = talk("about apples")
    assert vaala("export", conversation_id).err == f"exported to {conversation_id}.tar.gz\n"
    done = vaala("export", conversation_id)
    assert (done.code, "exists; name another file" in done.err) == (2, True)
    assert [path.name for path in Path().iterdir() if "part" in path.name] == []


def test_export_to_a_place_that_cannot_be_written(vaala: Vaala, talk: Talk) -> None:
    done = vaala("export", talk("about apples"), "absent/a.tar.gz")
    assert (done.code, "absent/a.tar.gz: No such file" in done.err) == (4, True)


@pytest.mark.parametrize("content", [None, b"", b"no archive at all"])
def test_what_is_no_archive_is_not_imported(
    vaala: Vaala, tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "a").write_bytes(content)
    done = vaala("import", str(tmp_path / "a"))
    assert done.code == (4 if content is None else 2)
    assert done.err.startswith("vaala: ")
    assert vaala("list", "--json").lines == []


def test_reindex_restores_a_list_whose_index_is_gone(
    vaala: Vaala, talk: Talk, isolated: Path
) -> None:  # G4-3
    conversation_id = talk("about apples")
    vaala("stop")
    for file in (isolated / ".local/share/vaala").glob("metadata.db*"):
        file.unlink()
    done = vaala("reindex")
    assert (done.code, done.out) == (0, "1 conversations indexed\n")
    assert [row["id"] for row in vaala("list", "--json").lines] == [conversation_id]


@pytest.mark.parametrize("command", ["show", "delete", "export"])
def test_an_id_that_is_none_or_unknown(vaala: Vaala, talk: Talk, command: str) -> None:
    talk("something")
    for text, complaint in (("xyz", "is no id"), ("ffffffff", "no conversation 'ffffffff'")):
        done = vaala(command, text)
        assert done.code == 2
        assert complaint in done.err
        assert done.err.count("\n") == 1


def test_the_beginning_of_several_ids_is_not_enough(vaala: Vaala, talk: Talk) -> None:
    first, second = talk("one"), talk("two")
    common = next(n for n in range(40) if first[:n] != second[:n]) - 1
    done = vaala("show", first[:common])
    assert (done.code, "the beginning of several ids" in done.err) == (2, True)


def test_an_archive_comes_from_stdin(vaala: Vaala, talk: Talk, tmp_path: Path) -> None:
    vaala("export", talk("about apples"), str(tmp_path / "a.tar.gz"))
    done = vaala("import", "-", stdin=(tmp_path / "a.tar.gz").read_bytes())
    assert done.code == 0
    assert "about apples" in vaala("show", done.out.strip()).out


@pytest.mark.parametrize("place", ["file", "file/sub", "/proc/x"])
@pytest.mark.parametrize(
    "words", [["run", "-m", "scripted", "x"], ["reindex"], ["delete", "01"], ["import", "file"]]
)
def test_a_data_directory_that_cannot_be_used_is_named(
    vaala: Vaala, words: list[str], place: str
) -> None:
    Path("file").write_text("no directory")
    done = vaala(*words, "--data-dir", place)
    path = Path(place).absolute()
    assert (done.code, done.out, done.err.count("\n")) == (4, "", 1)
    assert done.err.startswith(f"vaala: the data directory {path} cannot be used: ")
    assert done.err.endswith("; choose another with --data-dir\n")


@pytest.mark.parametrize("words", [["list"], ["show", "01"], ["search", "x"], ["export", "01"]])
def test_reading_a_data_directory_that_is_none(vaala: Vaala, words: list[str]) -> None:
    Path("file").write_text("no directory")
    done = vaala(*words, "--data-dir", "file")
    assert (done.code, "file cannot be used: it is no directory" in done.err) == (4, True)


def test_search_shows_each_conversation_once(vaala: Vaala, script: Any) -> None:
    model = script("  - say: an apple, apple and apple\n")
    Path("prompts").write_text("an apple\nmore apple\n")
    for _ in range(3):
        vaala("run", "-m", model, "--prompts", "prompts")
    rows = vaala("search", "apple", "--json").lines
    assert len({row["conversation"]["id"] for row in rows}) == len(rows) == 3
    assert len(vaala("search", "apple", "--json", "--limit", "2").lines) == 2


@pytest.mark.parametrize("text", ["", "  "])
def test_a_search_for_nothing_is_wrong_usage(vaala: Vaala, text: str) -> None:
    done = vaala("search", text)
    assert (done.code, "give the words" in done.err) == (2, True)
