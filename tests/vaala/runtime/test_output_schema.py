"""The last answer of a turn is the document that its message asked for, or the turn has failed."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

import vaala
from tests.vaala.runtime.driving import conversation, is_turn, script, until
from vaala import limits
from vaala.models.base import Finish, ModelEvent, ModelRequest, OutputFormat, TextDelta
from vaala.services import limits as check_limits
from vaala.testing.function_model import FunctionModel, answer
from vaala_protocol.errors import BadRequest
from vaala_protocol.items import AssistantMessage, ModelError
from vaala_protocol.settings import Settings
from vaala_protocol.state import InputInfo, TurnResult

CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "people": {"type": "integer"}},
    "required": ["city", "people"],
    "additionalProperties": False,
}
GOOD = '{"city": "Bergen", "people": 291940}'
BAD = '{"city": "Bergen", "people": "many"}'


class Answers:
    """A model that gives these answers, one after another."""

    def __init__(self, *answers: list[ModelEvent]) -> None:
        self.asked: list[OutputFormat | None] = []
        self.last = b""
        self.model = FunctionModel(self._respond)
        self._answers = list(answers)

    async def _respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.asked.append(request.output)
        self.last = self.model.encode(request.messages)
        for event in self._answers.pop(0):
            yield event


async def asked(model: FunctionModel, directory: Path, schema: Any = CITY) -> TurnResult:
    async with conversation(model, directory) as (_, talk):
        return await talk.run("How large is Bergen?", output_schema=schema)


async def test_an_answer_that_matches(tmp_path: Path) -> None:
    answers = Answers(answer("", ("list_dir", {"path": "."})), answer(GOOD))
    result = await asked(answers.model, tmp_path)
    assert (result.turn.state, result.text) == ("completed", GOOD)
    assert answers.asked == [OutputFormat(CITY)] * 2


@pytest.mark.parametrize("text", [f"```json\n{GOOD}\n```", f"\n```\n{GOOD}```\n", f" {GOOD}\n"])
async def test_a_fence_around_the_document_is_taken_away(tmp_path: Path, text: str) -> None:
    async with conversation(Answers(answer(text)).model, tmp_path) as (_, talk):
        result = await talk.run("How large?", output_schema=CITY)
        page = await talk.items()
    assert result.text == GOOD
    assert [item.text for item in page.items if isinstance(item, AssistantMessage)] == [GOOD]


async def test_a_model_is_told_what_is_wrong(tmp_path: Path) -> None:
    answers = Answers(answer(BAD), answer("Bergen has 291940."), answer(GOOD))
    async with conversation(answers.model, tmp_path) as (_, talk):
        result = await talk.run("How large?", output_schema=CITY)
        page = await talk.items()
    assert (result.turn.state, result.text, result.turn.steps) == ("completed", GOOD, 3)
    told = [item for item in page.items if isinstance(item, ModelError)]
    assert [item.error for item in told] == ["invalid_output"] * 2
    assert told[0].message.endswith('`people` must be integer, not "many"')
    assert b"is no JSON document" in answers.last
    assert [one and one.again for one in answers.asked] == [False, True, True]


async def test_a_model_that_does_not_get_there_fails_the_turn(tmp_path: Path) -> None:
    tries = limits.OUTPUT_RETRIES_MAX + 1
    answers = Answers(*[answer(BAD)] * tries)
    result = await asked(answers.model, tmp_path)
    assert (result.turn.state, result.turn.stop_reason) == ("failed", "failed")
    expected = 'The answer does not match the output schema: `people` must be integer, not "many"'
    assert result.turn.message == expected
    assert len(answers.asked) == tries


async def test_half_a_document_is_none(tmp_path: Path) -> None:
    half: list[ModelEvent] = [TextDelta(GOOD[:-1]), Finish("length")]
    answers = Answers(half, [TextDelta(GOOD), Finish("length")], half)
    result = await asked(answers.model, tmp_path)
    assert result.turn.state == "failed"
    assert "cut at the token limit" in result.turn.message


async def test_a_refusal_stays_one(tmp_path: Path) -> None:
    answers = Answers([TextDelta("I will not."), Finish("refusal")])
    result = await asked(answers.model, tmp_path)
    assert (result.turn.state, result.turn.stop_reason) == ("completed", "refusal")


async def test_a_long_document_is_checked_whole(tmp_path: Path) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    good, bad = list(range(20_000)), [*range(20_000), "x"]
    answers = Answers(answer(json.dumps(bad)), answer(json.dumps(good)))
    async with conversation(answers.model, tmp_path) as (_, talk):
        result = await talk.run("Count.", output_schema=schema)
        page = await talk.items()
    assert json.loads(result.text) == good
    (told,) = (item for item in page.items if isinstance(item, ModelError))
    assert told.message.endswith('`20000` must be integer, not "x"')


async def test_a_schema_whose_forms_multiply_is_checked_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_limits, "ANSWER_VISITS_MAX", 20_000)
    forms: dict[str, Any] = {"0": {"type": "null"}}
    for number in range(25):
        below = {"$ref": f"#/$defs/{number}"}
        forms[str(number + 1)] = {"anyOf": [below, below]}
    answers = Answers(answer("1"), answer("null"))
    result = await asked(answers.model, tmp_path, {"$ref": "#/$defs/10", "$defs": forms})
    assert result.text == "null"
    answers = Answers(*[answer("1")] * 3)
    result = await asked(answers.model, tmp_path, {"$ref": "#/$defs/25", "$defs": forms})
    assert "it takes too long to be checked" in result.turn.message


async def test_a_schema_is_for_its_turn_alone(tmp_path: Path) -> None:
    answers = Answers(answer(GOOD), answer("Plain."))
    async with conversation(answers.model, tmp_path) as (_, talk):
        await talk.run("How large?", output_schema=CITY)
        assert (await talk.run("And now?")).text == "Plain."
    assert answers.asked == [OutputFormat(CITY), None]


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"properties": {"a": {"type": "text"}}}, 'at properties.a.type: there is no type "text"'),
        ({"$ref": "#/$defs/a"}, "leads to no schema"),
        ({"$ref": "https://example.org/s"}, "leads to no schema"),
        ({"pattern": "(?=a)"}, "no pattern that can be checked"),
        ({"allOf": [{"unevaluatedItems": False}]}, "at allOf.0.unevaluatedItems: this keyword"),
        ({"multipleOf": 0}, "not a number above 0"),
        ({"description": "x" * limits.OUTPUT_SCHEMA_BYTES_MAX}, "bytes, at most"),
    ],
)
async def test_a_schema_that_cannot_be_used_is_refused(
    tmp_path: Path, schema: dict[str, Any], words: str
) -> None:
    async with conversation(script({"say": "x"}), tmp_path) as (_, talk):
        with pytest.raises(BadRequest, match="the output schema") as caught:
            await talk.send("x", output_schema=schema)
    assert words in str(caught.value)


async def test_a_queued_message_keeps_its_schema_over_a_restart(tmp_path: Path) -> None:
    settings = Settings(mode="full")
    hangs = script({"say": "I begin.", "hang": True})
    async with (
        vaala.open_store(tmp_path / "data") as store,
        vaala.open_runtime(models=hangs, storage=store) as runtime,
    ):
        talk = await runtime.create_conversation(directory=str(tmp_path), settings=settings)
        await talk.send("First.")
        sent = await talk.send("How large?", output_schema=CITY)
        assert sent.output_schema == CITY
    answers = Answers(answer(BAD), answer(GOOD))
    async with (
        vaala.open_store(tmp_path / "data") as store,
        vaala.open_runtime(models=answers.model, storage=store) as runtime,
    ):
        again = await runtime.open_conversation(talk.id)
        known: InputInfo = await again.edit_input(sent.id, "How large is Bergen?")
        assert known.output_schema == CITY
        async with again.subscribe() as updates:
            await again.resume()
            await until(updates, is_turn("completed"))
    assert answers.asked == [OutputFormat(CITY), OutputFormat(CITY, again=True)]
