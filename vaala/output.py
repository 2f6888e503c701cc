"""`OutputCheck`: holds the last answer of a turn against the schema that its message asked for."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import partial
from typing import Any

import trio
from msgspec import Struct

from vaala import limits
from vaala.agent.answer import Answer
from vaala.changes import replace
from vaala.models.base import OutputFormat
from vaala.services import limits as check_limits
from vaala.services.schema_check import TooMuch, answer_problems
from vaala.tools.strict_json import NotStrict, parse_value
from vaala_protocol.items import AssistantMessage, Item

_FENCED = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_QUICK_CHARACTERS = 4_096
_QUICK_VISITS = 1_000
"""A longer answer, or one with more to look at, is checked in a thread: that may take seconds."""


class Judged(Struct, frozen=True):
    answer: Answer
    """Its text is the document and nothing else, where it matches."""
    problem: str | None
    """One line that says what does not match; None: it matches."""


class OutputCheck:
    """Of one turn. ``again`` counts what the model was told."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._told = 0

    @property
    def wanted(self) -> OutputFormat:
        """What the next model call is asked for."""
        return OutputFormat(self._schema, again=self._told > 0)

    @property
    def told(self) -> int:
        """How often the model was told that its answer does not match."""
        return self._told

    def may_tell(self) -> bool:
        """Count a further time that the model is told; False: it was told often enough."""
        if self._told >= limits.OUTPUT_RETRIES_MAX:
            return False
        self._told += 1
        return True

    async def judge(self, answer: Answer) -> Judged:
        """Hold a complete answer without calls against the schema.

        A fence of Markdown around all of it is taken away. Cancel: nothing has happened.
        """
        said = [item for item in answer.items if isinstance(item, AssistantMessage)]
        text = "".join(item.text for item in said)
        bare = _unfenced(text.strip())
        if answer.finish is not None and answer.finish.reason == "length":
            return Judged(answer, "it was cut at the token limit")
        problem = await self._problem(bare)
        if problem is None and bare != text:
            answer = replace(answer, items=_with_text(answer.items, bare))
        return Judged(answer, problem)

    async def _problem(self, text: str) -> str | None:
        if len(text) <= _QUICK_CHARACTERS:
            with suppress(TooMuch):
                return _problem_of(text, self._schema, _QUICK_VISITS)
        check = partial(_problem_of, text, self._schema, check_limits.ANSWER_VISITS_MAX)
        try:
            # What a thread still does after a cancel is of no use to anybody, and harms nobody.
            return await trio.to_thread.run_sync(check, abandon_on_cancel=True)
        except TooMuch:
            return "it takes too long to be checked; make the schema simpler"


def _problem_of(text: str, schema: dict[str, Any], visits_max: int) -> str | None:
    if not text:
        return "it is empty"
    try:
        value = parse_value(text)
    except NotStrict as error:
        return f"it is no JSON document and nothing else ({error})"
    problems = answer_problems(value, schema, visits_max)
    if not problems:
        return None
    shown = "; ".join(problems[: limits.OUTPUT_PROBLEMS_MAX])
    more = len(problems) - limits.OUTPUT_PROBLEMS_MAX
    return f"{shown}; and {more} more" if more > 0 else shown


def _unfenced(text: str) -> str:
    found = _FENCED.fullmatch(text)
    return text if found is None else found[1].strip()


def _with_text(items: list[Item], text: str) -> list[Item]:
    """Return the items with one message, which has this text. What a provider wants back with the
    words as they came does not fit it any more."""
    kept: list[Item] = []
    for item in items:
        if not isinstance(item, AssistantMessage):
            kept.append(item)
        elif text:
            kept.append(replace(item, text=text, private=None))
            text = ""
    return kept
