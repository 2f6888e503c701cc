"""``ask_user``: a question that a person answers, wherever they are."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta

from vaala.permissions.base import Access
from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolFailure, ToolResult
from vaala.tools.declared import DeclaredTool
from vaala.tools.results import noted
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean, clean_line
from vaala_executors.workspace import Workspace
from vaala_protocol.calls import OtherDetails


class AskArguments(ToolArguments, frozen=True):
    question: Annotated[str, Meta(max_length=limits.QUESTION_CHARS_MAX)]
    choices: Annotated[
        list[str],
        Meta(
            description="Answers to choose from; another one may come",
            max_length=limits.QUESTION_CHOICES_MAX,
        ),
    ] = []


class AskUser(DeclaredTool[AskArguments]):
    """Waits until somebody answers, or the turn is interrupted. It touches nothing."""

    def __init__(self) -> None:
        super().__init__(
            "ask_user",
            "Ask the user what you cannot find out or decide yourself, and wait for the answer.",
            AskArguments,
        )

    async def plan(self, arguments: AskArguments, workspace: Workspace) -> PreparedCall:
        text = clean(arguments.question).strip()
        if not text:
            raise ToolFailure("ask_user was not run: the question is empty")
        length = limits.QUESTION_CHOICE_CHARS_MAX
        choices = dict.fromkeys(clean_line(choice, length) for choice in arguments.choices)
        choices.pop("", None)
        title = f"Ask: {clean_line(text, limits.TITLE_CHARS_MAX)}"
        return PreparedCall(
            details=OtherDetails(title=title),
            title=title,
            access=Access("none"),
            run=partial(_ask, text, tuple(choices)),
        )


async def _ask(text: str, choices: tuple[str, ...], context: ToolContext) -> ToolResult:
    answer = await context.ask(text, choices)
    if answer is None:
        return noted("", "The user does not want to answer. Decide yourself, or stop and say why.")
    return noted(clean(answer), "" if answer.strip() else "The answer is empty.")
