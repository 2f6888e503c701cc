"""`ScriptedModel`: the model that plays a script. The format is told in the package's text."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import trio
from msgspec import Struct

from vaala.models.base import (
    CallDelta,
    CallEnd,
    CallStart,
    Finish,
    FirstByte,
    Message,
    Model,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    ProviderBlob,
    ReasoningDelta,
    TextDelta,
    UsageReport,
)
from vaala.models.scripted.program import Answer, Place, ScriptedCall, ScriptedFailure
from vaala.models.scripted.script import compile_script
from vaala.models.scripted.template import Expression, Template, fill
from vaala.models.scripted.transcript import API, Transcript, encode_messages
from vaala_protocol.base import encode
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import Usage

_BYTES_PER_TOKEN = 4
_OVER = "The script ends here."
"""Said when results wait and the script has no step for them."""


class ScriptedModel(Model):
    """Plays ``script``, the data of a script file. Raises `BadRequest` when it is none.

    ``gates`` are the events that ``wait`` steps wait for. ``watch`` is called with each request.
    One object serves any number of sessions; only the counters of ``times`` are shared by them.
    """

    def __init__(
        self,
        script: Any,
        *,
        name: str = "scripted",
        gates: Mapping[str, trio.Event] | None = None,
        watch: Callable[[ModelRequest], None] | None = None,
    ) -> None:
        self._name = name
        self._program = compile_script(script, name)
        self._gates = gates or {}
        self._watch = watch
        self._failed: Counter[int] = Counter()

    @property
    def name(self) -> str:
        return self._name

    @property
    def provider(self) -> str:
        return "scripted"

    @property
    def api(self) -> str:
        return API

    @property
    def window_tokens(self) -> int | None:
        return self._program.window_tokens

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        if self._watch is not None:
            self._watch(request)
        async with aclosing(self._play(request)) as events:
            yield events

    async def _play(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        late = encode_messages(request.messages)
        transcript = Transcript(request.history, late)
        found = self._find(transcript)
        if found is None:
            yield TextDelta(_OVER)
            yield ProviderBlob("message", self._state(Place(), ()))
            yield Finish("stop", "end of script")
            return
        answer, place = found
        await trio.sleep(answer.pace.delay_s)
        self._raise_if(answer.fail, place)
        yield FirstByte()
        spoken = 0
        for event in self._pieces(answer, _Scope(transcript, place)):
            await trio.sleep(answer.pace.pace_s)
            spoken += _size(event)
            yield event
        await self._linger(answer)
        self._raise_if(answer.cut, place)
        yield UsageReport(answer.usage or _estimate(request, late, spoken))
        after = Place(place.operation + 1, place.rounds)
        yield ProviderBlob("message", self._state(after, answer.calls))
        yield Finish(answer.finish or ("tool_calls" if answer.calls else "stop"), "scripted")

    def _find(self, transcript: Transcript) -> tuple[Answer, Place] | None:
        """Return the answer to give and its place; None when there is none for waiting results."""
        newest = next(transcript.answers(), None)
        state: dict[str, Any] = newest[0]["answer"] if newest else {}
        place = Place()
        if state.get("script") == self._program.digest:
            place = Place(state["at"], tuple(state["rounds"]))

        def gives_text(when: Expression, at: Place) -> bool:
            return bool(when.text(_Scope(transcript, at)))

        try:
            found = self._program.next_answer(place, gives_text)
            results_wait = newest is not None and "result" in newest[-1]
            if found is None and not results_wait:
                found = self._program.next_answer(Place(), gives_text)
        except BadRequest as error:
            raise ModelFailure("bug", f"{self._name}: {error}") from error
        return found

    def _state(self, place: Place, calls: Sequence[ScriptedCall]) -> dict[str, Any]:
        return {
            "script": self._program.digest,
            "at": place.operation,
            "rounds": list(place.rounds),
            "names": [call.name for call in calls],
        }

    def _pieces(self, answer: Answer, scope: _Scope) -> Iterator[ModelEvent]:
        chars = answer.pace.chunk_chars
        for piece in _cut(answer.think.text(scope), chars):
            yield ReasoningDelta(piece)
        for piece in _cut(answer.say.text(scope), chars):
            yield TextDelta(piece)
        for index, call in enumerate(answer.calls):
            yield CallStart(index, call.tool)
            arguments = _arguments(call, scope)
            for piece in _cut(arguments, chars):
                yield CallDelta(index, piece)
            if answer.cut is None:
                yield CallEnd(index, arguments)

    async def _linger(self, answer: Answer) -> None:
        if answer.gate is not None:
            gate = self._gates.get(answer.gate)
            if gate is None:
                raise ModelFailure("bug", f"{self._name}: no gate is named {answer.gate!r}")
            await gate.wait()
        if answer.hang:
            await trio.sleep_forever()

    def _raise_if(self, failure: ScriptedFailure | None, place: Place) -> None:
        if failure is None:
            return
        if failure.times is not None:
            if self._failed[place.operation] >= failure.times:
                return
            self._failed[place.operation] += 1
        raise ModelFailure(
            failure.kind,
            failure.message,
            retryable=failure.retryable,
            retry_after_s=failure.retry_after_s,
            status=failure.status,
        )


class _Scope(Struct, frozen=True):
    """What templates read."""

    transcript: Transcript
    place: Place

    def result(self, name: str) -> str:
        for answer, *followers in self.transcript.answers():
            names: list[str] = answer["answer"]["names"]
            if name not in names:
                continue
            results = [message["result"] for message in followers if "result" in message]
            at = names.index(name)
            return str(results[at]) if at < len(results) else ""
        return ""

    def prompt(self) -> str:
        return self.transcript.prompt()

    def round(self) -> int:
        return self.place.rounds[-1] if self.place.rounds else 1


def _arguments(call: ScriptedCall, scope: _Scope) -> str:
    if isinstance(call.arguments, Template):
        return call.arguments.text(scope)
    return encode(fill(call.arguments, scope)).decode()


def _cut(text: str, chars: int) -> Iterator[str]:
    return (text[at : at + chars] for at in range(0, len(text), chars))


def _size(event: ModelEvent) -> int:
    match event:
        case TextDelta(text) | ReasoningDelta(text) | CallDelta(_, text):
            return len(text)
        case _:
            return 0


def _estimate(request: ModelRequest, late: bytes, spoken_chars: int) -> Usage:
    read = len(request.instructions) + len(request.history) + len(late)
    return Usage(
        input=read // _BYTES_PER_TOKEN + 1,
        output=spoken_chars // _BYTES_PER_TOKEN + 1,
    )
