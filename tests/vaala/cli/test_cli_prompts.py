"""Where prompts come from: words, stdin, a file; and what is no prompt."""

from __future__ import annotations

import io
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from vaala.cli.exits import UNREACHABLE, USAGE, CommandFailed
from vaala.cli.prompts import FILE_BYTES_MAX, read_prompts, split_prompts
from vaala.limits import INPUT_BYTES_MAX


class FakeStdin(io.TextIOWrapper):
    def __init__(self, data: bytes, *, terminal: bool = False) -> None:
        super().__init__(io.BytesIO(data), encoding="utf-8")
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


def _read(*words: str, prompts: str | None = None) -> list[str]:
    return read_prompts(Namespace(prompt=list(words), prompts=prompts))


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", FakeStdin("from stdin ä\n".encode()))


def test_words_are_one_prompt() -> None:
    assert _read("Fix", "the bug") == ["Fix the bug"]


@pytest.mark.usefixtures("piped")
def test_stdin_is_the_prompt_when_there_is_no_other() -> None:
    assert _read() == ["from stdin ä"]


@pytest.mark.usefixtures("piped")
def test_stdin_is_left_alone_when_there_are_words() -> None:
    assert _read("hello") == ["hello"]
    assert sys.stdin.read() == "from stdin ä\n"


@pytest.mark.usefixtures("piped")
def test_a_dash_stands_for_stdin() -> None:
    assert _read("Explain", "this:", "-", "Be", "short.") == [
        "Explain this:\n\nfrom stdin ä\n\nBe short."
    ]


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\t"])
def test_nothing_on_stdin_is_no_prompt(data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", FakeStdin(data))
    with pytest.raises(CommandFailed, match="the prompt is empty") as caught:
        _read()
    assert caught.value.code == USAGE


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", FakeStdin(b"", terminal=True))
    with pytest.raises(CommandFailed, match="no prompt"):
        _read()


def test_bytes_that_are_no_text_become_replacement_characters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "stdin", FakeStdin(b"a\xffb"))
    assert _read() == ["a\ufffdb"]


def test_a_prompt_that_is_too_long_is_refused_before_anything_starts() -> None:
    with pytest.raises(CommandFailed, match=r"the prompt has .* bytes, at most .* can be sent"):
        _read("x" * (INPUT_BYTES_MAX + 1))


@pytest.mark.parametrize(
    ("text", "prompts"),
    [
        ("one\ntwo\n", ["one", "two"]),
        ("one\n\n  two  \n", ["one", "two"]),
        ("first\nline two\n---\nsecond\n", ["first\nline two", "second"]),
        ("---\n\n---\nonly\n---\n", ["only"]),
        ("a\r\n---\r\nb\r\n", ["a", "b"]),
        ("", []),
        ("---\n", []),
    ],
)
def test_a_file_with_several_prompts(text: str, prompts: list[str]) -> None:
    assert split_prompts(text) == prompts


def test_prompts_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "prompts"
    file.write_text("\ufeffone\ntwo\n", "utf-8")
    assert _read(prompts=str(file)) == ["one", "two"]


@pytest.mark.usefixtures("piped")
def test_prompts_from_stdin() -> None:
    assert _read(prompts="-") == ["from stdin ä"]


def test_a_prompts_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandFailed, match=r"--prompts .*absent: No such file") as caught:
        _read(prompts=str(tmp_path / "absent"))
    assert caught.value.code == UNREACHABLE


def test_a_prompts_file_that_is_too_long_comes_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "long").write_bytes(b"x" * (FILE_BYTES_MAX + 1))
    wanted = r"16,777,216 bytes, and one prompt at most 458,752; put what is long into a file"
    with pytest.raises(CommandFailed, match=wanted):
        _read(prompts=str(tmp_path / "long"))


def test_an_empty_prompts_file_and_two_sources_are_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    with pytest.raises(CommandFailed, match="no prompt in it"):
        _read(prompts=str(tmp_path / "empty"))
    with pytest.raises(CommandFailed, match="not both"):
        _read("x", prompts=str(tmp_path / "empty"))
