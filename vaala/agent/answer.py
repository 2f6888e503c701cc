"""One model call: from events to items, shown while they grow."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from msgspec import Struct, field

from vaala import limits
from vaala.changes import now_ms, replace
from vaala.live import LiveParts
from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FirstByte,
    Model,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.caller import Answered
from vaala.text import fitting, json_bytes, scrub
from vaala.waits import Waits
from vaala_protocol.calls import OtherDetails
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, Item, Private, Reasoning, ToolCall
from vaala_protocol.settings import Usage

Said = TypeVar("Said", AssistantMessage, Reasoning)

_ITEM_BYTES = 256
"""What an item has in the log beside its text: bounds the number of items of an answer."""


class Place(Struct):
    """Where the items of an answer go."""

    session_id: str
    turn_id: str
    step: int
    next_at: Callable[[], int]


class Answer(Struct):
    """What a model said, complete or as far as it came."""

    items: list[Item] = field(default_factory=list)
    """Text and reasoning, in order of appearance, whole."""
    calls: list[ToolCall] = field(default_factory=list)
    finish: Finish | None = None
    usage: Usage = Usage()
    first_byte_at: int | None = None


class _Room:
    """What of a text still fits, in bytes of JSON as the log holds it."""

    __slots__ = ("_left", "omitted")

    def __init__(self, bytes_max: int) -> None:
        self._left = bytes_max
        self.omitted = 0
        """Characters that did not fit: once one did not, none does."""

    def take(self, text: str, *, more_bytes: int = 0) -> str:
        """Return the beginning of ``text`` that fits, along with ``more_bytes`` around it."""
        fits = "" if self.omitted else fitting(text, self._left - more_bytes)
        self._left -= json_bytes(fits) + more_bytes
        self.omitted += len(text) - len(fits)
        return fits


class AnswerBuilder:
    """Takes the events of one stream. `answer` gives the items, also of a stream that broke.

    Bounded: text and reasoning of an answer by ``ANSWER_BYTES_MAX`` each, the arguments of a call
    by ``ARGUMENTS_BYTES_MAX``. What is left out of a text is told at its end; arguments that were
    cut are no JSON, and the call is refused for that.
    """

    def __init__(self, model: Model, place: Place, live: LiveParts) -> None:
        self._model = model
        self._place = place
        self._live = live
        self._open: AssistantMessage | Reasoning | None = None
        self._room: dict[type[Item], _Room] = {
            kind: _Room(limits.ANSWER_BYTES_MAX) for kind in (AssistantMessage, Reasoning)
        }
        self._arguments_room: dict[int, _Room] = {}
        self._said: list[AssistantMessage | Reasoning] = []
        self._calls: dict[int, ToolCall] = {}
        self._private: dict[object, Private] = {}
        self._finish: Finish | None = None
        self._usage = Usage()
        self._first_byte_at: int | None = None

    def take(self, event: ModelEvent) -> None:
        self._first_byte_at = self._first_byte_at or now_ms()
        match event:
            case TextDelta(text=text):
                self._say(AssistantMessage, text)
            case ReasoningDelta(text=text):
                self._say(Reasoning, text)
            case CallStart(index=index, name=name):
                self._start_call(index, name)
            case CallDelta(index=index, arguments=arguments):
                shown = self._arguments_room[index].take(scrub(arguments))
                self._live.add(self._calls[index].id, shown)
            case CallEnd(index=index, arguments=arguments):
                whole = fitting(scrub(arguments), limits.ARGUMENTS_BYTES_MAX)
                self._calls[index] = replace(self._calls[index], arguments=whole)
            case ProviderBlob(part=part, data=data):
                model = self._model
                self._private[part] = Private(
                    provider=model.provider, api=model.api, model=model.name, data=data
                )
            case UsageReport(usage=usage):
                self._usage = usage
            case Finish():
                self._finish = event
            case FirstByte():
                pass

    @property
    def usage(self) -> Usage:
        """What the provider has reported so far."""
        return self._usage

    def answer(self, *, partial: bool) -> Answer:
        """Return what came; ``partial``: the stream broke.

        What a call that is not complete has of its arguments is kept too, to be looked at.
        """
        self._close_open(partial=partial)
        self._keep_private()
        last = {type(item): number for number, item in enumerate(self._said)}
        for number in last.values():
            self._said[number] = self._with_end(self._said[number])
        calls = [
            replace(
                call,
                arguments=call.arguments or self._live.text(call.id),
                private=self._private.get(index),
            )
            for index, call in sorted(self._calls.items())
        ]
        return Answer(
            items=list(self._said),
            calls=calls,
            finish=self._finish,
            usage=self._usage,
            first_byte_at=self._first_byte_at,
        )

    def drop(self) -> None:
        """Take back all that was shown: the call is made again, and this answer is empty."""
        self._close_open(partial=True)
        for item in (*self._said, *self._calls.values()):
            self._live.drop(item.id)
        self._said.clear()
        self._calls.clear()
        self._private.clear()
        self._finish = None

    def _say(self, kind: type[Said], text: str) -> None:
        room = self._room[kind]
        begins = not isinstance(self._open, kind)
        text = room.take(scrub(text), more_bytes=_ITEM_BYTES if begins and text else 0)
        if not text:
            return
        if begins:
            self._close_open(partial=False)
            self._open = self._new(kind)
            self._live.show(self._open, "text")
        assert self._open is not None
        self._live.add(self._open.id, text)

    def _close_open(self, *, partial: bool) -> None:
        item, self._open = self._open, None
        if item is None:
            return
        text = self._live.text(item.id)
        self._said.append(replace(item, text=text, partial=partial, completed_at=now_ms()))

    def _keep_private(self) -> None:
        """Opaque data of an answer that has no text still needs an item to be kept in."""
        if "message" in self._private and not any(
            isinstance(item, AssistantMessage) for item in self._said
        ):
            self._said.append(self._new(AssistantMessage))

    def _new(self, kind: type[Said]) -> Said:
        place = self._place
        return kind(
            id=new_id(), at=place.next_at(), created_at=now_ms(), turn_id=place.turn_id,
            step=place.step, session_id=place.session_id,
        )  # fmt: skip

    def _start_call(self, index: int, name: str) -> None:
        self._close_open(partial=False)
        place = self._place
        name = scrub(name)[:200]
        call = ToolCall(
            id=new_id(), at=place.next_at(), created_at=now_ms(), turn_id=place.turn_id,
            step=place.step, session_id=place.session_id,
            name=name, arguments="", details=OtherDetails(title=name), title=name,
        )  # fmt: skip
        self._calls[index] = call
        self._arguments_room[index] = _Room(limits.ARGUMENTS_BYTES_MAX)
        self._live.show(call, "arguments")

    def _with_end(self, item: AssistantMessage | Reasoning) -> AssistantMessage | Reasoning:
        """Give the last item of its kind what belongs to all of them."""
        part = "reasoning" if isinstance(item, Reasoning) else "message"
        omitted = self._room[type(item)].omitted
        note = f"\n… {omitted} characters left out …" if omitted else ""
        return replace(item, text=item.text + note, private=self._private.get(part))


async def stream_answer(
    model: Model, request: ModelRequest, builder: AnswerBuilder, waits: Waits, answered: Answered
) -> None:
    """Make one call and give its events to ``builder``. Raises `ModelFailure`.

    ``answered`` is of the turn of a `Caller`, in whose body this runs. A stream that ends without
    its terminal event is a failure of kind ``incomplete``. Cancel: the request is closed at once;
    the builder holds what came.
    """
    finished = False
    deadlines = request.deadlines or model.deadlines
    with ExitStack() as stack:
        stack.enter_context(
            waits.on(model.name, "first byte of the answer", timeout_s=deadlines.first_byte_s)
        )
        async with model.stream(request) as events:
            first = True
            async for event in events:
                if first:
                    first = False
                    answered()
                    stack.close()
                    stack.enter_context(waits.on(model.name, "the answer is coming"))
                builder.take(event)
                finished = finished or isinstance(event, Finish)
    if not finished:
        raise ModelFailure("incomplete", "the answer ended before it was complete", retryable=True)
