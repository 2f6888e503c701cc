"""From items to messages: total, and a fold over steps.

Any log gives a valid request. Each step becomes messages by itself; what a step needs to know of
the ones before it is the role of the last message. Closed steps are kept encoded for one wire
format, so a long history costs a copy of bytes. Folding step by step equals folding from scratch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, TypeAlias

from vaala.agent.context import Context
from vaala.agent.said import line, said_by, text_block, visible
from vaala.models.base import (
    AssistantSaid,
    CallPart,
    CallResult,
    Message,
    Model,
    ReasoningPart,
    UserSaid,
)
from vaala.text import is_blank, scrub
from vaala.tools.strict_json import NotStrict, parse_object
from vaala_protocol.base import encode
from vaala_protocol.calls import TERMINAL_CALL_STATES
from vaala_protocol.items import AssistantMessage, Item, Reasoning, ToolCall

Role: TypeAlias = Literal["user", "assistant", "result"]

WHOLE = Context()
"""Nothing is left out."""

_MALFORMED_CHARACTERS_MAX = 2_000


def messages_of(
    items: Iterable[Item],
    last: Role | None,
    known: Collection[str] = (),
    context: Context = WHOLE,
) -> tuple[Message, ...]:
    """Return the messages of one step; ``last`` is the role of the message before it.

    A call always has one result. No message is empty. An answer never follows an answer, and the
    first message is a person's: where the log has it otherwise, a line stands in between. No call
    has an id of those ``known`` from earlier steps, though a damaged log may repeat one.
    """
    said: list[UserSaid] = []
    texts: list[str] = []
    reasoning: list[ReasoningPart] = []
    calls: list[ToolCall] = []
    private = None
    for item in sorted(context.shown(items), key=lambda item: item.at):
        match item:
            case AssistantMessage():
                texts.append(item.text)
                private = item.private or private
            case Reasoning():
                reasoning.append(ReasoningPart(item.text, item.private))
            case ToolCall():
                calls.append(item)
            case _:
                if content := said_by(item):
                    said.append(UserSaid(content))
    text = "".join(texts)
    shown = "" if is_blank(text) else text
    if not calls and not shown:
        return tuple(said)
    lead = [] if said or last in ("user", "result") else [line("(The conversation goes on.)")]
    parts = tuple(_call(call, id) for call, id in zip(calls, _distinct(calls, known), strict=True))
    answer = AssistantSaid(scrub(shown), tuple(reasoning), parts, private)
    results = (_result(call, part, context) for call, part in zip(calls, parts, strict=True))
    return (*said, *lead, answer, *results)


def _distinct(calls: Iterable[ToolCall], known: Collection[str]) -> list[str]:
    ids: list[str] = []
    for call in calls:
        id, times = call.id, 1
        while id in known or id in ids:
            times += 1
            id = f"{call.id}.{times}"
        ids.append(id)
    return ids


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
    bytes, and the open step's messages. Not safe to share between two turns. What ``context``
    leaves out is left out from the start: when that changes, the history is folded anew.
    """

    def __init__(self, model: Model, context: Context = WHOLE) -> None:
        self.model = model
        self.context = context
        self._closed = bytearray()
        self._last: Role | None = None
        self._calls: set[str] = set()
        self._add(context.lead)

    def fits(self, model: Model, context_at: int) -> bool:
        """Tell whether it is encoded as this model wants it, and the newest cut is in it."""
        mine = (self.model.api, self.model.name, self.context.at)
        return mine == (model.api, model.name, context_at)

    def close(self, items: Iterable[Item]) -> None:
        """Add a step that will not change any more."""
        messages = messages_of(items, self._last, self._calls, self.context)
        self._add(messages)
        self._calls.update(said.id for said in messages if isinstance(said, CallResult))

    def _add(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        if self._closed:
            self._closed += b","
        self._closed += self.model.encode(messages)
        self._last = role_after(messages, self._last)

    def request(self, open_items: Iterable[Item]) -> tuple[bytes, tuple[Message, ...]]:
        """Return the closed steps, encoded, and the messages that follow, ready to be sent."""
        return bytes(self._closed), self.open_messages(open_items)

    def open_messages(self, open_items: Iterable[Item]) -> tuple[Message, ...]:
        """Return the messages that follow the closed steps.

        The last one is a person's or a result: otherwise there would be nothing to answer.
        """
        messages = messages_of(open_items, self._last, self._calls, self.context)
        if role_after(messages, self._last) not in ("user", "result"):
            messages = (*messages, line("(Go on.)"))
        return messages

    @property
    def size_bytes(self) -> int:
        return len(self._closed)


async def read_history(
    model: Model,
    pages: AsyncIterator[list[Item]],
    open_step: tuple[str, int],
    context: Context = WHOLE,
) -> History:
    """Fold the items of a log, page by page; the step that is open, of a turn, is left out."""
    history = History(model, context)
    async for items in pages:
        for step in steps_of(items):
            if (step[0].turn_id, step[0].step) != open_step:
                history.close(step)
    return history


def last_words_of(items: Iterable[Item]) -> str:
    """Return what the agent said in the last step that has an answer."""
    said = [item for item in items if isinstance(item, AssistantMessage) and item.text]
    return "".join(item.text for item in said if item.step == said[-1].step)


def _call(item: ToolCall, id: str) -> CallPart:
    return CallPart(id, item.name, _arguments(item.arguments), item.private)


def _arguments(text: str) -> str:
    """Return the text of a JSON object; what is none is wrapped, so that the model sees it.

    Servers parse the arguments of past calls: what the strictest parser refuses (case A2-5), or
    what decodes to text with a NUL in it, never reaches them.
    """
    try:
        if parse_object(text) or text.strip():
            return text if "\\u0000" not in text else _wrapped(text)
    except NotStrict:
        return _wrapped(text)
    return "{}"


def _wrapped(text: str) -> str:
    return encode({"malformed_arguments": scrub(text[:_MALFORMED_CHARACTERS_MAX])}).decode()


def _result(item: ToolCall, call: CallPart, context: Context) -> CallResult:
    content = visible(context.result_of(item)) or (text_block(_without_result(item)),)
    return CallResult(call.id, call.name, content, is_error=item.state != "done")


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
