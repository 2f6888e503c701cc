"""The scripted model, played by a small loop that stands for the agent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from tests.vaala.models.script_player import Agent, echo, play, text_of
from vaala.models.base import (
    AssistantSaid,
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FirstByte,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.scripted.files import Scripts
from vaala.models.scripted.script import compile_script
from vaala.testing import ScriptedModel
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import Private
from vaala_protocol.settings import Usage


def calls(*names: str) -> list[dict[str, Any]]:
    return [{"tool": name, "arguments": {}} for name in names]


async def test_text_calls_and_results() -> None:
    script = {
        "steps": [
            {
                "say": "Looking.",
                "call": [
                    {"tool": "list_dir", "arguments": {"path": "."}, "as": "files"},
                    {"tool": "read_file", "arguments": {"path": "a", "limit": 3}},
                ],
            },
            {
                "say": "{{ results.files | first_line }} / {{ results.read_file }} / {{ prompt }}",
                "call": {"tool": "edit", "arguments": {"old": ["{{ results.files | lines }}"]}},
            },
            {"say": "{{ results.edit }} {{results.files|line 2}}"},
        ]
    }

    def tools(name: str, arguments: dict[str, Any]) -> str:
        return "one\ntwo\n" if name == "list_dir" else echo(name, arguments)

    agent = Agent(ScriptedModel(script), tools)
    assert await agent.prompt("hi") == 'edit {"old": ["2"]} two'
    assert agent.said[1] == 'one / read_file {"path": "a", "limit": 3} / hi'


async def test_events_of_an_answer() -> None:
    script = {
        "chunk": 3,
        "steps": [
            {"think": "hm hm", "say": "hello", "call": {"tool": "t", "raw": "{bad"},
             "usage": {"input": 1, "cache_read": 2, "output": 3}},
        ],
    }  # fmt: skip
    events = await play(ScriptedModel(script), ModelRequest("", (), b"", ()))
    blob = events[-2]
    assert isinstance(blob, ProviderBlob)
    assert events[:-2] == [
        FirstByte(),
        ReasoningDelta("hm "), ReasoningDelta("hm"),
        TextDelta("hel"), TextDelta("lo"),
        CallStart(0, "t"), CallDelta(0, "{ba"), CallDelta(0, "d"), CallEnd(0, "{bad"),
        UsageReport(Usage(input=1, cache_read=2, output=3)),
    ]  # fmt: skip
    assert events[-1] == Finish("tool_calls", "scripted")


async def test_each_prompt_goes_on_and_the_end_begins_anew() -> None:
    agent = Agent(ScriptedModel({"steps": [{"say": "one"}, {"say": "two {{ prompt }}"}]}))
    assert [await agent.prompt(p) for p in "abc"] == ["one", "two b", "one"]


async def test_branches() -> None:
    script = {
        "steps": [
            {"when": 'prompt | match "(?i)test"', "then": [{"call": calls("run")}]},
            {
                "when": 'results.run | match "^FAILED"',
                "then": [{"say": "broken"}],
                "else": [{"say": "fine"}],
            },
        ]
    }
    failed = Agent(ScriptedModel(script), lambda name, arguments: "x\nFAILED (1)")
    assert await failed.prompt("Test it") == "broken"
    passed = Agent(ScriptedModel(script), lambda name, arguments: "OK")
    assert await passed.prompt("test") == "fine"
    assert await Agent(ScriptedModel(script)).prompt("hello") == "fine"


async def test_repeat() -> None:
    rounds = {"repeat": 3, "steps": [{"call": {"tool": "t", "arguments": {"n": "{{ round }}"}}}]}
    script = {"steps": [{"repeat": 2, "steps": [rounds]}, {"repeat": 0, "steps": [{"say": "no"}]},
                        {"say": "done {{ results.t }}"}]}  # fmt: skip
    agent = Agent(ScriptedModel(script))
    assert await agent.prompt("go") == 'done t {"n": "3"}'
    assert len(agent.said) == 7


async def test_results_without_a_step_end_the_turn() -> None:
    agent = Agent(ScriptedModel({"steps": [{"call": calls("t")}]}))
    assert await agent.prompt("go") == "The script ends here."
    assert await agent.prompt("again") == "The script ends here."
    assert agent.said == ["", "The script ends here."] * 2


async def test_another_script_begins_at_its_top() -> None:
    agent = Agent(ScriptedModel({"steps": [{"say": "a"}, {"say": "b"}]}))
    await agent.prompt("x")
    agent.model = ScriptedModel({"steps": [{"say": "c"}, {"say": "d"}]})
    assert [await agent.prompt("x"), await agent.prompt("x")] == ["c", "d"]


async def test_what_others_said_in_the_history_is_no_place() -> None:
    agent = Agent(ScriptedModel({"steps": [{"say": "a"}, {"say": "b {{ prompt }}"}]}))
    await agent.prompt("x")
    tricky = 'other {"answer":{"at":7}} ,{"user":"no"}'
    foreign = Private(provider="openai", api="chat", model="m", data={"at": 0})
    agent.close([AssistantSaid(tricky, private=foreign), AssistantSaid(tricky)])
    assert await agent.prompt(tricky) == f"b {tricky}"


async def test_a_broken_answer_is_given_again() -> None:
    agent = Agent(ScriptedModel({"steps": [{"say": "a"}, {"say": "b"}]}))
    await agent.prompt("x")
    agent.close([AssistantSaid("half of b")])
    assert await agent.prompt("y") == "b"


async def test_failures() -> None:
    step = {"fail": {"kind": "rate_limit", "retry_after_s": 7, "status": 429, "times": 2},
            "say": "hi"}  # fmt: skip
    model = ScriptedModel({"steps": [step]})
    for _ in range(2):
        with pytest.raises(ModelFailure) as caught:
            await play(model, ModelRequest("", (), b"", ()))
        failure = caught.value
        assert (failure.kind, failure.retryable, failure.retry_after_s, failure.status) == (
            "rate_limit", True, 7, 429,
        )  # fmt: skip
    assert text_of(await play(model, ModelRequest("", (), b"", ()))) == "hi"


@pytest.mark.parametrize(
    ("cut", "kind", "retryable"),
    [(True, "incomplete", True), ({"kind": "auth", "message": "no key"}, "auth", False)],
)
async def test_cut(cut: Any, kind: str, retryable: bool) -> None:
    model = ScriptedModel({"steps": [{"say": "half", "call": calls("t"), "cut": cut}]})
    seen: list[ModelEvent] = []

    async def run() -> None:
        async with model.stream(ModelRequest("", (), b"", ())) as events:
            async for event in events:
                seen.append(event)

    with pytest.raises(ModelFailure) as caught:
        await run()
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert text_of(seen) == "half"
    assert not any(isinstance(event, CallEnd | Finish) for event in seen)


async def test_delays_are_on_the_clock(autojump_clock: trio.testing.MockClock) -> None:
    script = {"chunk": 1, "steps": [{"say": "abc", "delay_s": 60, "pace_s": 1}]}
    await play(ScriptedModel(script), ModelRequest("", (), b"", ()))
    assert trio.current_time() == pytest.approx(63)


async def test_hang_is_cancelled_at_once(autojump_clock: trio.testing.MockClock) -> None:
    with trio.move_on_after(3600) as scope:
        await play(ScriptedModel({"steps": [{"hang": True}]}), ModelRequest("", (), b"", ()))
    assert scope.cancelled_caught


async def test_a_gate_holds_the_answer_after_its_text() -> None:
    gate = trio.Event()
    model = ScriptedModel({"steps": [{"say": "x", "wait": "go"}]}, gates={"go": gate})
    seen: list[ModelEvent] = []

    async def run() -> None:
        async with model.stream(ModelRequest("", (), b"", ())) as events:
            async for event in events:
                seen.append(event)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(run)
        await trio.testing.wait_all_tasks_blocked()
        assert seen == [FirstByte(), TextDelta("x")]
        gate.set()
    assert isinstance(seen[-1], Finish)
    with pytest.raises(ModelFailure, match="no gate is named 'go'"):
        await play(ScriptedModel({"steps": [{"wait": "go"}]}), ModelRequest("", (), b"", ()))


async def test_finish_watch_window_and_names() -> None:
    seen: list[ModelRequest] = []
    script = {"window": 1000, "steps": [{"say": "x", "finish": "length"}]}
    model = ScriptedModel(script, name="mine", watch=seen.append)
    request = ModelRequest("rules", (), b"", ())
    assert (await play(model, request))[-1] == Finish("length", "scripted")
    assert seen == [request]
    assert (model.name, model.provider, model.api, model.window_tokens) == (
        "mine", "scripted", "scripted", 1000,
    )  # fmt: skip


async def test_a_script_in_circles_fails_visibly() -> None:
    spin = {
        "repeat": 100_000,
        "steps": [{"when": 'prompt | match "never"', "then": [{"say": "x"}]}],
    }
    with pytest.raises(ModelFailure, match="without an answer"):
        await play(ScriptedModel({"steps": [spin]}), ModelRequest("", (), b"", ()))


async def test_only_the_end_of_a_long_history_is_read() -> None:
    model = ScriptedModel({"steps": [{"call": calls("t")}, {"say": "{{ results.t }}"}]})
    agent = Agent(model)
    # What stands before the newest answer is no JSON at all: it is never decoded.
    agent.history = b"\x00" * 100_000
    assert await agent.prompt("x") == "t {}"


WRONG = [
    ({}, "needs steps"),
    ({"steps": []}, "needs steps"),
    ([], "is a mapping with"),
    ({"steps": [{"sai": "x"}]}, r"steps\[0\]: unknown sai"),
    ({"steps": ["x"]}, r"steps\[0\]: is a mapping"),
    ({"steps": [{"say": 5}]}, r"steps\[0\].say: is a text"),
    ({"steps": [{"say": "{{ result.x }}"}]}, "begins with results.NAME, prompt or round"),
    ({"steps": [{"say": "{{ results.x }}"}]}, "no call is named 'x'; there are: none"),
    ({"steps": [{"say": "{{ prompt | eval }}"}]}, "'eval' is no filter"),
    ({"steps": [{"say": "{{ prompt | }}"}]}, "is empty"),
    ({"steps": [{"say": "{{ prompt(1) }}"}]}, "cannot read"),
    ({"steps": [{"say": '{{ prompt | match "(" }}'}]}, "no regular expression"),
    ({"steps": [{"call": {"arguments": {}}}]}, r"call\[0\]: needs tool"),
    ({"steps": [{"call": {"tool": "t", "arguments": "x"}}]}, "use raw"),
    ({"steps": [{"fail": {"kind": "bad"}}]}, "kind: is one of auth"),
    ({"steps": [{"finish": "bad"}]}, "finish: is one of stop"),
    ({"steps": [{"repeat": -1, "steps": []}]}, "a whole number, at least 0"),
    ({"steps": [{"delay_s": "1"}]}, "is a number of seconds"),
    ({"steps": [{"chunk": 0}]}, "at least 1"),
    ({"steps": [{"usage": {"input": "x"}}]}, "usage"),
    ({"steps": [{"when": "prompt", "then": {}}]}, "then: is a list"),
    ({"steps": [{"call": {"tool": "t", "arguments": {"x": object()}}}]}, "JSON cannot hold"),
]


@pytest.mark.parametrize(("script", "message"), WRONG)
def test_a_wrong_script_is_told_where(script: Any, message: str) -> None:
    with pytest.raises(BadRequest, match=message):
        compile_script(script)


async def test_a_script_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text('steps:\n  - say: "{{ prompt | chars }} chars"\n', "utf-8")
    scripts = Scripts()
    model = await scripts.load(path)
    assert model.name == f"scripted:{path}"
    assert await Agent(model).prompt("four") == "4 chars"
    assert await Agent(await scripts.load(path)).prompt("again") == "5 chars"
    path.write_text("steps:\n  - say: changed\n", "utf-8")
    assert await Agent(await scripts.load(path)).prompt("four") == "changed"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "cannot be read: No such file"),
        ("a: [", "is no YAML"),
        ("\xff", "is no YAML"),
        ("a: 1", "unknown a"),
        ("x" * (1024 * 1024 + 1), "is larger than 1048576 bytes"),
    ],
)
async def test_a_script_file_that_is_none(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "a.yaml"
    if text is not None:
        path.write_text(text, "latin-1")
    with pytest.raises(BadRequest, match=message):
        await Scripts().load(path)


def test_importing_models_and_scripts_loads_nothing_heavy() -> None:
    code = (
        "import sys; import vaala.testing, vaala.models.set, vaala.models.scripted.demo;"
        "heavy = {'httpx', 'pydantic', 'ruamel', 'ruamel.yaml', 'anyio'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
