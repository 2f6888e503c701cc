"""How people see ids, times, items and notes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from vaala.cli.notes import NOTE_CHARS_MAX, Notes
from vaala.cli.people import local_time, short_ids, title_of
from vaala.cli.transcript import RESULT_LINES_MAX, item_text
from vaala_protocol.calls import CommandDetails, OtherDetails
from vaala_protocol.content import FileContent, ImageContent, TextContent
from vaala_protocol.items import (
    Approval,
    ApprovalAnswer,
    ApprovalOption,
    AssistantMessage,
    CommandEnd,
    ContextCut,
    Interruption,
    Item,
    ModelError,
    Notice,
    PeerMessage,
    Plan,
    PlanStep,
    Reasoning,
    ToolCall,
    UnknownItem,
    UserMessage,
)
from vaala_protocol.state import ConversationInfo

BASE: dict[str, Any] = {"id": "i", "at": 1, "created_at": 0}
ALLOW = ApprovalOption(id="allow", kind="allow_once", label="Allow once")


@pytest.fixture
def new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("new_york")
def test_times_are_local_and_follow_the_season() -> None:
    assert local_time(1_796_075_000_000) == "2026-11-30 16:43"
    assert local_time(1_780_000_000_000) == "2026-05-28 16:26"


def test_short_ids_differ() -> None:
    one, two, three = "01a2-1111-aaaa-1", "01a2-1111-aaaa-2", "01b2-1111-aaaa-1"
    assert short_ids([one, two, three]) == {one: one, two: two, three: three[:13]}
    assert short_ids([]) == {}


def test_a_title_is_one_clean_line() -> None:
    info = ConversationInfo(id="i", created_at=0, updated_at=0, title="a\n\x1b[2Jb")
    assert title_of(info) == "a ␛[2Jb"


def _call(**fields: Any) -> ToolCall:
    details = fields.pop("details", OtherDetails(title="t"))
    return ToolCall(name="do", arguments="{}", title="Do it", details=details, **fields, **BASE)


COMMAND = CommandDetails(command="false", cwd=".", exit_code=1)
ITEMS: list[tuple[Item, str]] = [
    (UserMessage(content=(TextContent(text="hi"),), **BASE), "--- you, 1970-01-01 00:00\nhi"),
    (
        UserMessage(
            content=(
                ImageContent(blob="b", media_type="image/png", size_bytes=1234),
                FileContent(name="a.txt", blob="b", media_type="text/plain", size_bytes=5),
            ),
            **BASE,
        ),
        "--- you, 1970-01-01 00:00\n[image, 1,234 bytes]\n[file a.txt, 5 bytes]",
    ),
    (AssistantMessage(text="so", **BASE), "--- agent, 1970-01-01 00:00\nso"),
    (AssistantMessage(text=" \n", **BASE), ""),
    (
        AssistantMessage(text="so", partial=True, **BASE),
        "--- agent, 1970-01-01 00:00\nso\n(cut off here)",
    ),
    (
        PeerMessage(from_session="s", content=(TextContent(text="x"),), **BASE),
        "--- agent s\nx",
    ),
    (_call(state="done", result=(TextContent(text="out\n"),)), "> Do it\n  out"),
    (_call(state="denied", reason="not now"), "> Do it [denied]\n  not now"),
    (_call(state="done", details=COMMAND), "> Do it [exit code 1]"),
    (Reasoning(text="hm\nso", **BASE), "  (thinks: hm so)"),
    (Reasoning(**BASE), ""),
    (
        Approval(
            tool_call_id="c", digest="d", options=(ALLOW,), state="answered",
            answer=ApprovalAnswer(option="allow", by="ann", reason="fine"), **BASE,
        ),
        "  (approval: allow by ann: fine)",
    ),
    (Approval(tool_call_id="c", digest="d", options=(ALLOW,), **BASE), "  (approval: pending)"),
    (ModelError(error="auth", message="no", **BASE), "  (model error: no)"),
    (Notice(level="warning", text="careful", **BASE), "  (warning: careful)"),
    (Interruption(by="user", **BASE), "  (interrupted by user)"),
    (CommandEnd(command_id="c", tool_call_id="t", command="ls", **BASE), "  (ended: ls)"),
    (ContextCut(covers=0, shortens=1, **BASE),
     "  (from here on the agent sees old results of tools shortened)"),
    (ContextCut(covers=1, **BASE),
     "  (from here on the agent no longer sees what is above, or sees a summary)"),
    (Plan(steps=(PlanStep(text="look", state="completed"),), **BASE), "  [completed] look"),
    (UnknownItem(unknown_kind="new", fields={}, **BASE), "  (an item of a newer vaala: new)"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "text"), ITEMS)
def test_items_as_text(item: Item, text: str) -> None:
    assert item_text(item) == text


def test_a_long_result_is_cut_and_says_so() -> None:
    lines = "\n".join(map(str, range(RESULT_LINES_MAX + 5)))
    text = item_text(_call(state="done", result=(TextContent(text=lines),)))
    assert text.endswith(f"  {RESULT_LINES_MAX - 1}\n  … 5 more lines (--json shows all)")


def _notes(*items: Item, dim: bool = False) -> str:
    put: list[str] = []
    notes = Notes(put.append, dim=dim)
    for item in items:
        notes.item(item)
    return "".join(put)


def test_a_call_is_told_when_it_begins_and_when_it_goes_wrong() -> None:
    assert (
        _notes(
            _call(state="waiting"), _call(state="running"), _call(state="done"), _call(state="done")
        )
        == "> Do it\n"
    )
    assert _notes(_call(state="running"), _call(state="done", details=COMMAND)) == (
        "> Do it\n! Do it: exit code 1\n"
    )
    assert _notes(_call(state="error", result=(TextContent(text="no such file\nmore"),))) == (
        "! Do it: error: no such file\n"
    )


def test_a_call_that_was_never_seen_running_is_told_all_the_same() -> None:
    assert _notes(_call(state="done")) == "> Do it\n"


def test_waits_of_the_model_notices_and_ended_commands_are_told() -> None:
    assert (
        _notes(
            ModelError(error="rate_limit", message="slow down", retry_in_ms=7000, **BASE),
            Notice(level="info", text="x", **BASE | {"id": "n"}),
            CommandEnd(
                command_id="c", tool_call_id="t", command="make", exit_code=2, **BASE | {"id": "e"}
            ),
        )
        == "model: slow down; again in 7 s\ninfo: x\nended: make: exit code 2\n"
    )


def test_a_failure_that_ends_the_turn_is_left_to_the_end() -> None:
    assert _notes(ModelError(error="auth", message="no", **BASE)) == ""


def test_a_note_is_one_clean_dim_line_of_bounded_length() -> None:
    title = "\x1b]0;x\x07" + "y" * 1000
    call = ToolCall(
        name="do", arguments="{}", title=title, details=OtherDetails(title="t"),
        state="running", **BASE,
    )  # fmt: skip
    line = _notes(call, dim=True)
    assert line.startswith("\x1b[2m> ␛]0;x␇yy")
    assert line.endswith("…\x1b[0m\n")
    assert len(line) <= NOTE_CHARS_MAX + len("\x1b[2m\x1b[0m\n")
