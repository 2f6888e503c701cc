"""Where a history is cut, and what of it stays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vaala.core.items import call, said, text, user
from vaala.agent.context import context_of, kept_words, shortened
from vaala.agent.fitting import SizedStep, borders, first_that_fits, kept_of, upto_whole
from vaala.changes import replace
from vaala.dao.state import Head
from vaala_protocol.calls import AgentDetails, CommandDetails
from vaala_protocol.content import text_of
from vaala_protocol.items import (
    ContextCut,
    ContextSummary,
    Instructions,
    Item,
    Plan,
    PlanStep,
    Skill,
)
from vaala_protocol.state import CommandInfo


def steps(turns: str, size: int = 100) -> list[SizedStep]:
    """Return a step for each letter, which names its turn."""
    return [
        SizedStep(turn, (said(10 * number + 9, "x"),), size, size // 10)
        for number, turn in enumerate(turns)
    ]


@pytest.mark.parametrize(
    ("turns", "running", "found"),
    [
        ("", "z", ([], [])),
        ("aabb", "z", ([2, 4], [])),
        ("aabb", None, ([2, 4], [])),
        ("aabbb", "b", ([2], [3, 4])),
        ("aaa", "a", ([], [1, 2])),
        ("a", "a", ([], [])),
    ],
)
def test_borders(turns: str, running: str | None, found: object) -> None:
    assert borders(steps(turns), running) == found


@pytest.mark.parametrize(
    ("turns", "room", "number"),
    [
        ("aabbcc", 200, 4), ("aabbcc", 399, 4), ("aabbcc", 400, 2), ("aabbcc", 50, 6),
        ("aabzzz", 300, 3), ("aabzzz", 250, 4), ("aabzzz", 0, 5), ("z", 0, 0),
    ],
)  # fmt: skip
def test_the_first_border_that_fits(turns: str, room: int, number: int) -> None:
    assert first_that_fits(steps(turns), "z", 0, room) == number


def test_old_results_count_as_shortened() -> None:
    assert first_that_fits(steps("aabb"), "z", 39, 20) == 2


def test_the_newest_stay_whole() -> None:
    assert upto_whole(steps("aaaa"), "a", 250) == 19
    assert upto_whole(steps("aaaa"), "a", 400) == 0
    assert upto_whole(steps("aaaa"), "a", 0) == 29
    assert upto_whole(steps("aaaa"), "z", 0) == 39
    assert upto_whole(steps("a"), "a", 0) == 0


def test_what_counts_is_kept_by_its_place() -> None:  # C2-1, C2-3, C2-4, C2-5
    base: dict[str, Any] = {"created_at": 1}
    rule = Instructions(id="i", at=20, source="AGENTS.md", text="never run git push", **base)
    older = replace(rule, id="i0", at=19, text="old")
    other = Instructions(id="i2", at=21, source="memory", text="reply in French", **base)
    skill = Skill(id="s", at=22, name="tests", text="how", **base)
    plans = [Plan(id=f"p{at}", at=at, steps=(PlanStep(text="a"),), **base) for at in (23, 24)]
    command = replace(call(25), details=CommandDetails(command="make", cwd="/w", command_id="c1"))
    ended = replace(call(26), details=CommandDetails(command="ls", cwd="/w", command_id="c0"))
    agent = replace(call(27), details=AgentDetails(action="spawn", session_id="kid", task="t"))
    asked = [replace(user(at, words=f"ask {at}"), turn_id=f"t{at}") for at in range(1, 10)]
    own = [replace(user(at, words="own"), turn_id="z") for at in (30, 31)]
    info = CommandInfo(
        id="c1", session_id="s", tool_call_id="x", command="m", cwd="/", started_at=1
    )
    head = Head(commands=(info,), children={"kid": "27"})
    items: list[Item] = [
        *asked, older, rule, other, skill, *plans, command, ended, agent, *own,
        call(28), said(29, "x"),
    ]  # fmt: skip
    assert kept_of(items, head, "z") == (1, 9, 20, 21, 22, 24, 25, 27, 30, 31)


def test_the_words_of_what_stays() -> None:
    command = replace(call(25), details=CommandDetails(command="make", cwd="/w", command_id="c1"))
    assert "c1 was started: make (in /w)" in text_of(kept_words(command, 0))
    plan = Plan(id="p", at=1, created_at=1, steps=(PlanStep(text="look", state="completed"),))
    assert "[completed] look" in text_of(kept_words(plan, 0))
    long = user(1, words="word " * 1_000)
    assert text_of(kept_words(long, 0)) == "word " * 1_000
    assert len(text_of(kept_words(long, 500))) < 600


def test_a_shortened_result_tells_where_the_rest_is() -> None:
    long = replace(call(1), result=text("head" + "x" * 9_000 + "tail"))
    short = text_of(shortened(long, 1_000))
    assert short.startswith("head")
    assert "tail\n(shortened; read_file blob:" + long.id in short
    assert len(short) < 1_200
    assert shortened(call(1, result="short"), 1_000) == text("short")


def test_of_several_cuts_the_one_that_covers_most_counts_and_results_stay_short() -> None:
    base: dict[str, Any] = {"created_at": 1}
    first = ContextSummary(id="a", at=50, covers=40, text="S", **base)
    second = ContextCut(id="b", at=60, covers=45, keeps=(1, 50), **base)
    short = ContextCut(id="c", at=70, covers=0, shortens=65, result_bytes=300, **base)
    items: list[Item] = [first, second, short, user(1, words="the task")]
    context = context_of(items, items)
    assert (context.at, context.covers) == (70, 45)
    words = [text_of(one.content) for one in context.lead]
    assert words[1:-1] == ["the task", "Summary of what is left out, written by a model:\nS"]
    assert [one.at for one in context.shown([call(44), call(46), call(50)])] == [46]
    long = replace(call(64), result=text("x" * 5_000))
    assert len(text_of(context.result_of(long))) < 600
    assert context.result_of(replace(long, at=66)) == long.result
