"""What an embedder gets told for the mistakes that are easily made."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import vaala
from vaala.testing import ScriptedModel


@pytest.mark.parametrize("options", ["sure?", (), ("sure?",), None])
def test_an_ask_without_options_fails_at_once(options: Any) -> None:
    with pytest.raises(TypeError, match="ApprovalOption"):
        vaala.Ask(options)


async def test_a_gate_that_returns_no_decision_allows_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Vague(vaala.PermissionGate):
        async def decide(self, request: vaala.PermissionRequest) -> Any:
            return True

    steps = [
        {"call": {"tool": "list_dir", "arguments": {"path": "."}, "as": "files"}},
        {"say": "{{ results.files }}"},
    ]
    async with vaala.open_runtime(models=ScriptedModel({"steps": steps}), gate=Vague()) as runtime:
        conversation = await runtime.create_conversation()
        result = await conversation.run("look")
    assert "decide returned True, not Allow, Deny or Ask" in result.text
    assert "the permission gate failed" in caplog.text


async def test_a_runtime_without_a_model_says_where_to_pass_one() -> None:
    async with vaala.open_runtime() as runtime:
        conversation = await runtime.create_conversation()
        result = await conversation.run("x")
    assert result.turn.message == "no model: pass models= to open_runtime"


def test_asyncio_is_named_as_the_mistake() -> None:
    async def main() -> None:
        async with vaala.open_runtime():
            pass

    with pytest.raises(RuntimeError, match="inside trio"):
        importlib.import_module("asyncio").run(main())


def test_the_package_shows_its_names() -> None:
    assert dir(vaala) == sorted(vaala.__all__)
