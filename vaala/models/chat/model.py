"""`ChatModel`: a model at a server that speaks OpenAI-compatible chat completions."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from vaala.models.base import (
    Deadlines,
    Message,
    Model,
    ModelEvent,
    ModelFailure,
    ModelRequest,
)
from vaala.models.chat.decode import ChatDecoder
from vaala.models.chat.encode import encode_messages, request_body
from vaala.models.failures import Origin, failure_of_kind, failure_of_status
from vaala.models.http import Call, Http
from vaala.models.limits import ERROR_BODY_BYTES_MAX, TAIL_S
from vaala.models.listing import list_models
from vaala.models.provider import Provider

if TYPE_CHECKING:
    from vaala.models.exchange import Answer

_COMPLETION_TOKENS_HOSTS = ("//api.openai.com", ".openai.azure.com")
"""Their newer models refuse ``max_tokens``; other servers know nothing else."""


class ChatClient:
    """What all models of one provider share: its connections and what was learned of it."""

    def __init__(self, provider: Provider, http: Http) -> None:
        self.provider = provider
        self.origin = Origin(provider.name, provider.secrets, provider.url_from, provider.key_from)
        self._http = http
        self._url = f"{provider.base_url.rstrip('/')}/chat/completions"
        self._headers = {"content-type": "application/json", "accept": "text/event-stream"}
        if provider.key is not None:
            self._headers["authorization"] = f"Bearer {provider.key.reveal()}"
        self._headers |= {name: value.reveal() for name, value in provider.headers.items()}
        modern = any(host in provider.base_url for host in _COMPLETION_TOKENS_HOSTS)
        self._output_limit_field = "max_completion_tokens" if modern else "max_tokens"
        self._usage_refused = False
        """The server does not know ``stream_options``: it is left out from then on."""

    @asynccontextmanager
    async def answer(self, request: ModelRequest, model: str) -> AsyncGenerator[Answer]:
        """Send a request and give its answer, whose status is a success.

        Raises `ModelFailure`. A server that refuses ``stream_options`` is asked once more without.
        """
        deadlines = request.deadlines or self.provider.deadlines
        asks_usage = not self._usage_refused
        async with self._http.exchange(self._call(request, model, deadlines)) as answer:
            if 200 <= answer.status < 300:
                yield answer
                return
            body = await answer.read_all(ERROR_BODY_BYTES_MAX)
            failure = failure_of_status(self.origin, answer.status, answer.headers, body)
        if not (asks_usage and answer.status in (400, 422) and b"stream_options" in body):
            raise await self._explained(failure, model, body)
        self._usage_refused = True
        async with self.answer(request, model) as second:
            yield second

    async def _explained(self, failure: ModelFailure, model: str, body: bytes) -> ModelFailure:
        """Add what was perhaps meant when the server does not know the model, but lists others."""
        if failure.status != 404 and not (failure.status == 400 and b"model" in body.lower()):
            return failure
        try:
            known = await list_models(self._http, self.provider)
        except ModelFailure:
            return failure
        if model in known:
            return failure
        import difflib  # only where a model is unknown

        close = difflib.get_close_matches(model, known, n=3, cutoff=0.5) or known[:3]
        meant = ", ".join(f"{self.provider.name}/{name}" for name in close)
        text = f"{failure.message}; did you mean {meant}?"
        return ModelFailure(failure.kind, text, status=failure.status)

    def _call(self, request: ModelRequest, model: str, deadlines: Deadlines) -> Call:
        body = request_body(
            request,
            model,
            usage_asked=not self._usage_refused,
            output_limit_field=self._output_limit_field,
        )
        return Call(self._url, self._headers, body, deadlines, self.origin)


class ChatModel(Model):
    def __init__(self, client: ChatClient, model: str) -> None:
        self._client = client
        self._model = model

    @property
    def name(self) -> str:
        return f"{self.provider}/{self._model}"

    @property
    def provider(self) -> str:
        return self._client.provider.name

    @property
    def api(self) -> str:
        return "chat"

    @property
    def window_tokens(self) -> int | None:
        return self._client.provider.windows.get(self._model)

    @property
    def deadlines(self) -> Deadlines:
        return self._client.provider.deadlines

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        names = frozenset(tool.name for tool in request.tools)
        decoder = ChatDecoder(self._client.origin, names)
        deadlines = request.deadlines or self.deadlines
        async with self._client.answer(request, self._model) as answer:
            yield _Events(answer, decoder, self._client.origin, deadlines.progress_s)
            if decoder.ended:
                await answer.drain()


class _Events(AsyncIterator[ModelEvent]):
    """The events of an answer, read from its connection as they are asked for.

    What came before a failure is given before the failure is raised.
    """

    def __init__(
        self, answer: Answer, decoder: ChatDecoder, origin: Origin, progress_s: float
    ) -> None:
        self._answer = answer
        self._decoder = decoder
        self._origin = origin
        self._progress_s = progress_s
        self._by = trio.current_time() + progress_s
        """When the next read is given up whatever else comes: for lack of events, or of an end."""
        self._ready: deque[ModelEvent] = deque()
        self._failure: ModelFailure | None = None
        self._over = False

    async def __anext__(self) -> ModelEvent:
        while not self._ready:
            if self._failure is not None:
                failure, self._failure, self._over = self._failure, None, True
                raise failure
            if self._over or self._decoder.ended:
                raise StopAsyncIteration
            try:
                self._take(await self._next())
            except ModelFailure as failure:
                self._failure = failure
        return self._ready.popleft()

    async def _next(self) -> Iterator[ModelEvent]:
        """Read once and return what it gives."""
        problem: ModelFailure
        try:
            piece = await self._answer.read(self._by)
            return self._decoder.end() if piece is None else self._decoder.feed(piece)
        except ModelFailure as failure:
            problem = failure
        except TimeoutError:
            text = f"nothing but keep-alives for {self._progress_s:g} s"
            problem = failure_of_kind(self._origin, "network", text, retryable=True)
        if not self._decoder.finished:
            raise problem
        # It broke or dragged on, but after the server had said that the answer is complete.
        return self._decoder.end()

    def _take(self, events: Iterator[ModelEvent]) -> None:
        was_finished, before = self._decoder.finished, self._decoder.events_seen
        self._ready.extend(events)
        if self._decoder.finished:
            if not was_finished:
                self._by = min(self._by, trio.current_time() + TAIL_S)
        elif self._decoder.events_seen != before:
            self._by = trio.current_time() + self._progress_s
