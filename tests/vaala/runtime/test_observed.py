"""What the runtime tells its observer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Generator
from contextlib import AbstractContextManager, contextmanager

import pytest
import trio
import trio.testing

import vaala
from tests.vaala.runtime.worlds import World, settle
from vaala.models.base import (
    ModelEvent,
    ModelFailure,
    ModelRequest,
    TextDelta,
    UsageReport,
)
from vaala.observer import ModelWork, Observer, ToolWork, TurnWork, Work
from vaala.testing import ScriptedModel
from vaala.testing.function_model import FunctionModel
from vaala.turn import Turn
from vaala_protocol.settings import Usage


class _Noted(Work):
    __slots__ = ("_name", "_told")

    def __init__(self, name: str, told: list[str]) -> None:
        self._name = name
        self._told = told

    def ended(self, state: str, reason: str = "") -> None:
        self._told.append(f"{self._name} {state} {reason}".strip())

    def used(self, model: str, usage: Usage) -> None:
        self._told.append(f"{self._name} used {model}")


class Noting(Observer):
    def __init__(self) -> None:
        self.told: list[str] = []
        self.entries = 0

    @contextmanager
    def _noted(self, name: str) -> Generator[Work]:
        self.told.append(f"{name} begins")
        yield _Noted(name, self.told)

    def turn(self, work: TurnWork) -> AbstractContextManager[Work]:
        assert work.conversation_id == work.session_id
        return self._noted(f"turn of {work.agent}")

    def model_call(self, work: ModelWork) -> AbstractContextManager[Work]:
        return self._noted(f"call {work.step}.{work.attempt}")

    def tool_call(self, work: ToolWork) -> AbstractContextManager[Work]:
        return self._noted(work.tool)

    @contextmanager
    def append(self, session_id: str, entries: int) -> Generator[Work]:
        yield Work()
        self.entries += entries


async def told_of(*steps: dict[str, object]) -> Noting:
    noting = Noting()
    model = ScriptedModel({"steps": list(steps)})
    async with vaala.open_runtime(models=model, observer=noting) as runtime:
        conversation = await runtime.create_conversation(directory=".")
        await conversation.run("go")
    return noting


async def test_turns_calls_of_models_and_tools_and_appends_are_told() -> None:
    call = {"tool": "read_file", "arguments": {"path": "nothing.txt"}}
    noting = await told_of({"call": call}, {"say": "done"})
    assert noting.told == [
        "turn of default begins",
        "call 1.1 begins",
        "call 1.1 completed",
        "call 1.1 used scripted",
        "read_file begins",
        "read_file error",
        "call 2.1 begins",
        "call 2.1 completed",
        "call 2.1 used scripted",
        "turn of default completed end_turn",
    ]
    assert noting.entries > 6


async def test_a_call_that_fails_is_told_with_its_kind() -> None:
    noting = await told_of({"fail": {"kind": "auth", "message": "no"}})
    assert noting.told[-2:] == ["call 1.1 error auth", "turn of default failed failed"]


USED = Usage(input=100, output=7)


async def test_what_a_call_used_counts_however_it_ends(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """A call that fails or is interrupted is paid for, too."""
    noting = Noting()

    async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        yield UsageReport(USED)
        if model.requests == 1:
            raise ModelFailure("overloaded", "later", retryable=True)
        yield TextDelta("half")
        await trio.sleep_forever()

    model = FunctionModel(respond)
    async with World(model, observer=noting).talk() as (_, talk):
        await talk.send("go")
        await settle(60)
        assert await talk.interrupt()
        await settle(1)
        turn = (await talk.status()).sessions[0].turn_id
        assert turn is None
        (ended,) = (await talk.items()).items[-1:]
        assert ended.turn_id is not None
        result = await talk.turn(ended.turn_id)
    assert result.turn.state == "interrupted"
    assert result.turn.usage == {"function": USED + USED}
    assert [told for told in noting.told if told.startswith("call")] == [
        "call 1.1 begins",
        "call 1.1 error overloaded",
        "call 1.1 used function",
        "call 1.2 begins",
        "call 1.2 used function",
    ]


async def test_a_turn_that_crashes_is_told_as_failed(
    autojump_clock: trio.testing.MockClock,
    monkeypatch: pytest.MonkeyPatch,
    errors_logged: list[str],
) -> None:
    noting = Noting()

    async def crashes(self: Turn, ending: object) -> None:
        raise RuntimeError("a bug")

    async with World(ScriptedModel({"steps": [{"hang": True}]}), observer=noting).talk() as (
        _,
        talk,
    ):
        await talk.send("go")
        await settle(1)
        monkeypatch.setattr(Turn, "_close", crashes)
        assert await talk.interrupt()
        await settle(1)
    assert noting.told[-1] == "turn of default failed"
    assert errors_logged
