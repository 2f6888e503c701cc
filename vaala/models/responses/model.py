"""`ResponsesModel`: a model at a server that speaks the OpenAI Responses API."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

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
from vaala.models.responses.decode import ResponsesDecoder
from vaala.models.responses.encode import Asked, Author, encode_messages, request_body
from vaala.models.responses.limits import MODELS_REMEMBERED_MAX
from vaala.models.responses.refusals import asked_less
from vaala.models.tool_names import names_of

if TYPE_CHECKING:
    from vaala.models.exchange import Answer

_WITHOUT_REASONING = re.compile(r"(?:.*/)?(?:gpt-3|gpt-4|chatgpt)")
"""Models of OpenAI that refuse to be asked for reasoning: "Encrypted content is not supported with
this model" (github.com/pydantic/pydantic-ai/issues/2865). Others are asked, and remembered."""


class ResponsesClient(Client):
    """What all models of one provider share: its connections and what was learned of it."""

    def __init__(self, provider: Provider, http: Http) -> None:
        super().__init__(provider, http)
        self._url = f"{provider.base_url.rstrip('/')}/responses"
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            **auth_headers(provider),
        }
        self._refused: dict[str, Asked] = {}
        """By model: what may be asked of one that refused something."""
        self._outputs = Refusals()

    def model(self, name: str) -> ResponsesModel:
        return ResponsesModel(self, name)

    @asynccontextmanager
    async def answer(
        self, request: ModelRequest, author: Author, model: str
    ) -> AsyncGenerator[Answer]:
        """Send a request and give its answer, whose status is a success.

        Raises `ModelFailure`. What the server refuses of the things that we ask for on our own
        account is left out, and it is asked again: each at most once. What it then takes is
        remembered, but not that it refused the reasoning of earlier answers: the next may be good.
        """
        first = asked = self._asked(model, request)
        while True:
            body = request_body(request, model, author, asked)
            async with self.http.exchange(self._call(request, body)) as answer:
                if 200 <= answer.status < 300:
                    self._remember(model, first, asked)
                    if request.output is not None and first.output and not asked.output:
                        self._outputs.lower(model, request.output)
                    yield answer
                    return
                said = await answer.read_all(ERROR_BODY_BYTES_MAX)
                failure = failure_of_status(self.origin, answer.status, answer.headers, said)
            less = asked_less(asked, body, answer.status, said)
            if less is None:
                raise await self._explained(failure, model, said)
            asked = less

    def _asked(self, model: str, request: ModelRequest) -> Asked:
        known = self._refused.get(model)
        if known is None:
            reasons = _WITHOUT_REASONING.match(model) is None
            known = Asked(encrypted=reasons, summary=reasons)
        return replace(known, output=self._outputs.level(model, request.output) == 0)

    def _remember(self, model: str, first: Asked, asked: Asked) -> None:
        """Keep what the model took, when it was less than what was asked first."""
        if replace(asked, output=first.output) == first:
            return
        if len(self._refused) >= MODELS_REMEMBERED_MAX:
            self._refused.clear()
        self._refused[model] = replace(asked, replay=True)

    def _call(self, request: ModelRequest, body: bytes) -> Call:
        deadlines = request.deadlines or self.provider.deadlines
        return Call(self._url, self._headers, body, deadlines, self.origin, self.provider)

    async def _explained(self, failure: ModelFailure, model: str, said: bytes) -> ModelFailure:
        # OpenAI answers 400 for a model that it does not know.
        unknown = failure.status == 400 and b"model_not_found" in said
        if failure.status == 404 or unknown:
            return await with_models_meant(self.http, self.provider, failure, model)
        return failure


class ResponsesModel(ClientModel):
    def __init__(self, client: ResponsesClient, model: str) -> None:
        super().__init__(client, model)
        self._client = client
        self._author = Author(self.provider, self.api, self.name)

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages, self._author)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        origin = self._client.origin
        decoder = ResponsesDecoder(origin, names_of(request.tools))
        progress_s = (request.deadlines or self.deadlines).progress_s
        async with (
            self._client.answer(request, self._author, self._model) as answer,
            read_events(answer, decoder, origin, progress_s) as events,
        ):
            yield events


make_client = ResponsesClient
