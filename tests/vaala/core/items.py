"""Short ways to write items."""

from __future__ import annotations

from vaala_protocol.calls import CallState, OtherDetails
from vaala_protocol.content import Content, TextContent
from vaala_protocol.items import AssistantMessage, ToolCall, UserMessage

TURN = "turn"


def text(words: str) -> tuple[Content, ...]:
    return (TextContent(text=words),)


def user(at: int, *content: Content, words: str = "", step: int = 1) -> UserMessage:
    said = content or text(words)
    return UserMessage(id=f"u{at}", at=at, created_at=1, turn_id=TURN, step=step, content=said)


def said(at: int, words: str, step: int = 1) -> AssistantMessage:
    return AssistantMessage(id=f"a{at}", at=at, created_at=1, turn_id=TURN, step=step, text=words)


def call(
    at: int,
    state: CallState = "done",
    result: str = "",
    *,
    arguments: str = "{}",
    name: str = "read_file",
    reason: str | None = None,
    step: int = 1,
) -> ToolCall:
    return ToolCall(
        id=f"{at:08x}-0000-7000-8000-000000000000", at=at, created_at=1, turn_id=TURN, step=step,
        name=name, arguments=arguments, details=OtherDetails(title=name), state=state,
        result=text(result) if result else (), reason=reason,
    )  # fmt: skip
