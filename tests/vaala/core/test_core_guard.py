"""The loop guard ends what goes in circles and leaves alone what waits; the system prompt."""

from __future__ import annotations

import platform
from datetime import date

from tests.vaala.core.items import call
from vaala import limits
from vaala.agent.guard import LoopGuard
from vaala.agent.prompt import system_prompt
from vaala_protocol.items import ToolCall
from vaala_protocol.state import Location


def _first_objection(guard: LoopGuard, calls: list[ToolCall]) -> tuple[int, str] | None:
    """Return after how many steps of one call each the guard objects, and how."""
    for number, one in enumerate(calls, 1):
        if (reason := guard.note([one])) is not None:
            return number, reason
    return None


def test_four_identical_failures_end_the_turn() -> None:  # A6-3
    failure = call(1, "error", "no such file", arguments='{"path":"x"}')
    objection = _first_objection(LoopGuard(), [failure] * 10)
    assert objection == (4, "read_file failed 4 times in the same way")


def test_polls_that_succeed_are_no_loop() -> None:  # A6-3
    poll = call(1, "done", "still running", name="write_stdin", arguments='{"id":"1"}')
    assert _first_objection(LoopGuard(), [poll] * 20) is None


def test_an_unknown_tool_again_and_again_ends_the_turn() -> None:  # A6-1
    same = [call(at, "error", "no tool `read`", name="read") for at in range(1, 6)]
    assert _first_objection(LoopGuard(), same) == (4, "read failed 4 times in the same way")
    varied = [
        call(at, "error", "no tool `read`", name="read", arguments=f'{{"a":{at}}}')
        for at in range(1, 20)
    ]
    assert _first_objection(LoopGuard(), varied) == (
        limits.SIMILAR_FAILURES_MAX, "read failed 8 times in the same way",
    )  # fmt: skip


def test_a_success_of_the_tool_begins_the_count_anew() -> None:
    failure = call(1, "error", "no such file")
    guard = LoopGuard()
    for _ in range(5):
        assert _first_objection(guard, [failure] * 3) is None
        assert guard.note([call(2, "done", "text")]) is None
    assert guard.note([call(2, "done", "text", name="search")]) is None
    assert _first_objection(guard, [failure] * 3) is None
    assert guard.note([call(3, "done", "text", name="search")]) is None
    assert _first_objection(guard, [failure]) is not None, "another tool's success does not count"


def test_failures_that_differ_are_no_loop() -> None:
    calls = [
        call(at, "error", f"line {at} is wrong", arguments=f'{{"a":{at}}}') for at in range(20)
    ]
    assert _first_objection(LoopGuard(), calls) is None


def test_what_a_person_refuses_is_no_loop() -> None:
    assert _first_objection(LoopGuard(), [call(1, "denied")] * 10) is None


def test_identical_calls_side_by_side_count_each() -> None:
    failure = call(1, "error", "no such file")
    assert LoopGuard().note([failure] * limits.IDENTICAL_FAILURES_MAX) is not None


def test_the_system_prompt_tells_where_the_agent_works() -> None:
    places = (
        Location(executor="local", directory="/home/me/project", additional=("/data",)),
        Location(executor="box", directory="/srv"),
    )
    lines = system_prompt("  Be brief.\n", places, date(2026, 2, 3)).split("\n")
    assert lines == [
        "Be brief.", "", "Date: 2026-02-03",
        f"System: {platform.system()} {platform.machine()}",
        "Working directory: /home/me/project", "Also accessible: /data",
        "Working directory on box: /srv",
    ]  # fmt: skip
