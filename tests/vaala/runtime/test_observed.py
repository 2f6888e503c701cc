"""What the runtime tells its observer."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager

import vaala
from vaala.observer import ModelWork, Observer, ToolWork, TurnWork, Work
from vaala.testing import ScriptedModel
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
        "call 1.1 used scripted",
        "call 1.1 completed",
        "read_file begins",
        "read_file error",
        "call 2.1 begins",
        "call 2.1 used scripted",
        "call 2.1 completed",
        "turn of default completed end_turn",
    ]
    assert noting.entries > 6


async def test_a_call_that_fails_is_told_with_its_kind() -> None:
    noting = await told_of({"fail": {"kind": "auth", "message": "no"}})
    assert noting.told[-2:] == ["call 1.1 error auth", "turn of default failed failed"]
