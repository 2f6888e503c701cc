"""From items to messages: total, and a fold over steps.

Any log gives a valid request. Each step becomes messages by itself; what a step needs to know of
the ones before it is the role of the last message. Closed steps are kept encoded for one wire
format, so a long history costs a copy of bytes. Folding step by step equals folding from scratch.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from vaala.models.base import (
    AssistantSaid,
    CallPart,
    CallResult,
    Message,
    Model,
    ReasoningPart,
    UserSaid,
)
from vaala.text import is_blank
from vaala_protocol.base import Malformed, decode, encode
from vaala_protocol.calls import TERMINAL_CALL_STATES
from vaala_protocol.content import Content, TextContent
from vaala_protocol.items import (
    AssistantMessage,
    CommandEnd,
    ContextSummary,
    Instructions,
    Item,
    PeerMessage,
    Reasoning,
    Skill,
    ToolCall,
    UserMessage,
)

Role: TypeAlias = Literal["user", "assistant", "result"]

_ILLEGAL_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")


def messages_of(items: Iterable[Item], last: Role | None) -> tuple[Message, ...]:
    """Return the messages of one step; ``last`` is the role of the message before it.

    A call always has one result. No message is empty. An answer never follows an answer, and the
    first message is a person's: where the log has it otherwise, a line stands in between.
    """
    said: list[UserSaid] = []
    texts: list[str] = []
    reasoning: list[ReasoningPart] = []
    calls: list[ToolCall] = []
    private = None
    for item in sorted(items, key=lambda item: item.at):
        match item:
            case AssistantMessage():
                texts.append(item.text)
                private = item.private or private
            case Reasoning():
                reasoning.append(ReasoningPart(item.text, item.private))
            case ToolCall():
                calls.append(item)
            case _:
                if content := _said(item):
                    said.append(UserSaid(content))
    text = "".join(texts)
    shown = "" if is_blank(text) else text
    if not calls and not shown:
        return tuple(said)
    lead = [] if said or last in ("user", "result") else [_line("(The conversation goes on.)")]
    parts = tuple(_call(call) for call in calls)
    answer = AssistantSaid(shown, tuple(reasoning), parts, private)
    results = (_result(call, part.name) for call, part in zip(calls, parts, strict=True))
    return (*said, *lead, answer, *results)


def role_after(messages: Sequence[Message], last: Role | None) -> Role | None:
    """Return the role of the last message, once ``messages`` were added."""
    if not messages:
        return last
    match messages[-1]:
        case UserSaid():
            return "user"
        case AssistantSaid():
            return "assistant"
        case CallResult():
            return "result"


def steps_of(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Split items in order of ``at`` into steps; what belongs to no step stands alone."""
    for _, group in groupby(items, key=lambda item: (item.turn_id, item.step)):
        yield list(group)


class History:
    """The working history of a session, for one model's wire format.

    `close` takes a finished step. `request` returns what a model call needs: the closed steps as
    bytes, and the open step's messages. Not safe to share between two turns.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._closed = bytearray()
        self._last: Role | None = None

    def close(self, items: Iterable[Item]) -> None:
        """Add a step that will not change any more."""
        messages = messages_of(items, self._last)
        if not messages:
            return
        if self._closed:
            self._closed += b","
        self._closed += self.model.encode(messages)
        self._last = role_after(messages, self._last)

    def request(self, open_items: Iterable[Item]) -> tuple[bytes, tuple[Message, ...]]:
        """Return the closed steps, encoded, and the messages that follow, ready to be sent.

        The last message is a person's or a result: otherwise there would be nothing to answer.
        """
        messages = messages_of(open_items, self._last)
        if role_after(messages, self._last) not in ("user", "result"):
            messages = (*messages, _line("(Go on.)"))
        return bytes(self._closed), messages

    @property
    def size_bytes(self) -> int:
        return len(self._closed)


async def read_history(
    model: Model, pages: AsyncIterator[list[Item]], without_turn: str
) -> History:
    """Fold the items of a log, page by page; the turn that is about to go on is left out."""
    history = History(model)
    async for items in pages:
        for step in steps_of(items):
            if step[0].turn_id != without_turn:
                history.close(step)
    return history


def last_words_of(items: Iterable[Item]) -> str:
    """Return what the agent said in the last step that has an answer."""
    said = [item for item in items if isinstance(item, AssistantMessage) and item.text]
    return "".join(item.text for item in said if item.step == said[-1].step)


def _said(item: Item) -> tuple[Content, ...]:
    """Return what an item says to the model in the place of a person."""
    match item:
        case UserMessage():
            return _visible(item.content) or (TextContent(text="(an empty message)"),)
        case PeerMessage():
            head = TextContent(text=f"Message from agent {item.from_session}:")
            return (head, *_visible(item.content))
        case CommandEnd():
            return (TextContent(text=_command_end(item)),)
        case Instructions():
            return (TextContent(text=f"Instructions from {item.source}:\n{item.text}"),)
        case Skill():
            return (TextContent(text=f"Skill {item.name}:\n{item.text}"),)
        case ContextSummary():
            return (TextContent(text=f"Summary of the conversation so far:\n{item.text}"),)
        case _:
            return ()


def _command_end(item: CommandEnd) -> str:
    if item.lost:
        how = "was lost: the runtime ended while it ran"
    elif item.signal is not None:
        how = f"was ended by signal {item.signal}"
    else:
        how = f"ended with exit code {item.exit_code}"
    output = "" if is_blank(item.output) else f"\nIts last output:\n{item.output}"
    return f"The background command {item.command_id} ({item.command}) {how}.{output}"


def _visible(content: Sequence[Content]) -> tuple[Content, ...]:
    return tuple(
        block for block in content if not (isinstance(block, TextContent) and is_blank(block.text))
    )


def _line(text: str) -> UserSaid:
    return UserSaid((TextContent(text=text),))


def _call(item: ToolCall) -> CallPart:
    return CallPart(item.id, legal_name(item.name), _arguments(item.arguments), item.private)


def legal_name(name: str) -> str:
    """Return a tool name that every provider takes: 1 to 64 of ``[a-zA-Z0-9_-]``."""
    return _ILLEGAL_IN_NAME.sub("_", name)[:64] or "unknown"


def _arguments(text: str) -> str:
    """Return the text of a JSON object; what is none is wrapped, so that the model sees it."""
    try:
        value = decode(text.encode())
    except (Malformed, UnicodeEncodeError):
        value = None
    if isinstance(value, dict):
        return text
    return encode({"malformed_arguments": text[:2_000]}).decode() if text.strip() else "{}"


def _result(item: ToolCall, name: str) -> CallResult:
    content = _visible(item.result)
    if not content:
        content = (TextContent(text=_without_result(item)),)
    return CallResult(item.id, name, content, is_error=item.state != "done")


def _without_result(item: ToolCall) -> str:
    match item.state:
        case "done" | "error":
            return "(no output)"
        case "denied":
            return f"The call was not allowed. {item.reason or ''}".rstrip()
        case "cancelled":
            return f"The call was cancelled. {item.reason or ''}".rstrip()
        case _:
            assert item.state == "unknown" or item.state not in TERMINAL_CALL_STATES
            return (
                "The outcome is unknown: the runtime ended while the call ran. It may have taken "
                "effect; check before you repeat it."
            )
