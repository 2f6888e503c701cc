"""`OutputCheck`: holds the last answer of a turn against the schema that its message asked for."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

import trio
from msgspec import Struct

from vaala import limits
from vaala.agent.answer import Answer
from vaala.changes import replace
from vaala.models.base import OutputFormat
from vaala.services.schema_check import answer_problems
from vaala.tools.strict_json import NotStrict, parse_value
from vaala_protocol.items import AssistantMessage, Item

_FENCED = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)\n?[ \t]*```", re.DOTALL)
_IN_THREAD_CHARACTERS = 4_096
"""A longer answer is looked at in a thread: a check may take seconds."""


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
        check = partial(_problem_of, bare, self._schema)
        # What a thread still does after a cancel is only read from.
        problem = (
            await trio.to_thread.run_sync(check, abandon_on_cancel=True)
            if len(bare) > _IN_THREAD_CHARACTERS
            else check()
        )
        if problem is None and bare != text:
            answer = replace(answer, items=_with_text(answer.items, bare))
        return Judged(answer, problem)


def _problem_of(text: str, schema: dict[str, Any]) -> str | None:
    if not text:
        return "it is empty"
    try:
        value = parse_value(text)
    except NotStrict as error:
        return f"it is no JSON document and nothing else ({error})"
    problems = answer_problems(value, schema)
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
