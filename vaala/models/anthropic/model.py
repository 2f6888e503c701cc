"""`AnthropicModel`: a model at a server that speaks the Messages API."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from vaala.models.anthropic.decode import AnthropicDecoder
from vaala.models.anthropic.encode import encode_messages, has_thoughts
from vaala.models.anthropic.replay import Owner
from vaala.models.anthropic.request import Body, Target, request_body
from vaala.models.auth import auth_headers
from vaala.models.base import Message, ModelEvent, ModelFailure, ModelRequest
from vaala.models.client import Client, ClientModel
from vaala.models.events import read_events
from vaala.models.failures import failure_of_status
from vaala.models.http import Call, Http
from vaala.models.limits import ERROR_BODY_BYTES_MAX
from vaala.models.listing import with_models_meant
from vaala.models.output import Refusals
from vaala.models.provider import Provider
from vaala.models.tool_names import names_of

if TYPE_CHECKING:
    from vaala.models.exchange import Answer

_BETA = "anthropic-beta"
_OUTPUT_REFUSED = re.compile(rb"output_config|output_format|schema|structured outputs", re.I)
"""What stands in a refusal of a schema: "output_config.format: ...", "Schema is too complex"."""


class AnthropicClient(Client):
    """What all models of one provider share: its connections and what was learned of it."""

    def __init__(self, provider: Provider, http: Http) -> None:
        super().__init__(provider, http)
        self._url = f"{provider.base_url.rstrip('/')}/messages"
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            **auth_headers(provider),
        }
        self._drops_mismatched = False
        """The server checks what stood before a thought: it is told to leave out those that no
        longer fit."""
        self._outputs = Refusals()

    def model(self, name: str) -> AnthropicModel:
        return AnthropicModel(self, name)

    @asynccontextmanager
    async def answer(self, request: ModelRequest, target: Target) -> AsyncGenerator[Answer]:
        """Send a request and give its answer, whose status is a success.

        Raises `ModelFailure`. When the server refuses a thought that is sent back, because its
        signature is not good here or something before it has changed, it is asked once more in a
        way that it can take: no conversation ends for that.
        """
        ask_output = self._outputs.level(target.model, request.output) == 0
        target = replace(target, drop_mismatched=self._drops_mismatched, ask_output=ask_output)
        body = request_body(request, target)
        async with self.http.exchange(self._call(request, body)) as answer:
            if 200 <= answer.status < 300:
                yield answer
                return
            text = await answer.read_all(ERROR_BODY_BYTES_MAX)
            failure = failure_of_status(self.origin, answer.status, answer.headers, text)
        if failure.status == 400 and body.asks_output and _OUTPUT_REFUSED.search(text):
            assert request.output is not None
            self._outputs.lower(target.model, request.output)
            other: Target | None = target
        else:
            other = self._mended(target, body, failure, text)
        if other is None:
            raise await self._explained(failure, target.model)
        async with self.answer(request, other) as second:
            yield second

    def _mended(
        self, target: Target, body: Body, failure: ModelFailure, text: bytes
    ) -> Target | None:
        """Return how to ask again after a refusal, None: not at all."""
        refused = failure.status == 400 and b"signature" in text and b"thinking" in text
        if not refused or not target.keep_thoughts or not has_thoughts(body.data):
            return None
        if b"prefix_mismatch_behavior" in text and not self._drops_mismatched:
            self._drops_mismatched = True
            return target
        return replace(target, keep_thoughts=False)

    async def _explained(self, failure: ModelFailure, model: str) -> ModelFailure:
        if failure.status != 404:
            return failure
        return await with_models_meant(self.http, self.provider, failure, model)

    def _call(self, request: ModelRequest, body: Body) -> Call:
        headers = self._headers
        if body.betas:
            configured = headers.get(_BETA)
            betas = (*((configured,) if configured else ()), *body.betas)
            headers = headers | {_BETA: ",".join(betas)}
        deadlines = request.deadlines or self.provider.deadlines
        return Call(self._url, headers, body.data, deadlines, self.origin, self.provider)


class AnthropicModel(ClientModel):
    def __init__(self, client: AnthropicClient, model: str) -> None:
        super().__init__(client, model)
        self._client = client
        self._owner = Owner(self.provider, self.name)

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages, self._owner)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        origin = self._client.origin
        decoder = AnthropicDecoder(origin, names_of(request.tools))
        target = Target(self._owner, self._model, self.window_tokens)
        progress_s = (request.deadlines or self.deadlines).progress_s
        async with (
            self._client.answer(request, target) as answer,
            read_events(answer, decoder, origin, progress_s) as events,
        ):
            yield events


make_client = AnthropicClient
