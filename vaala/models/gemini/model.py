"""`GeminiModel`: a model at a server that speaks generateContent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import quote

from vaala.models.auth import auth_headers
from vaala.models.base import Message, ModelEvent, ModelRequest
from vaala.models.client import Client, ClientModel
from vaala.models.events import read_events
from vaala.models.failures import failure_of_status
from vaala.models.gemini.decode import GeminiDecoder
from vaala.models.gemini.encode import encode_messages
from vaala.models.gemini.names import ToolNames
from vaala.models.gemini.replay import Owner
from vaala.models.gemini.request import request_body
from vaala.models.gemini.thinking import wants_signatures
from vaala.models.http import Call, Http
from vaala.models.limits import ERROR_BODY_BYTES_MAX
from vaala.models.listing import with_models_meant
from vaala.models.output import Refusals
from vaala.models.provider import Provider

if TYPE_CHECKING:
    from vaala.models.exchange import Answer

_SCHEMA_REFUSED = (
    *(b"parametersJsonSchema", b"parameters_json_schema"),
    *(b"responseJsonSchema", b"response_json_schema"),
)
"""How a server names the field that it does not know."""
_OUTPUT_REFUSED = (b"mime", b"schema", b"Schema", b"JSON mode")
"""What stands in a refusal to answer by a schema: "Function calling with a response mime type:
'application/json' is unsupported", "JSON mode is not enabled for this model", "The specified schema
produces a constraint that has too many states for serving"."""


class GeminiClient(Client):
    """What all models of one provider share: its connections and what was learned of it."""

    def __init__(self, provider: Provider, http: Http) -> None:
        super().__init__(provider, http)
        # The key is a header: in a URL it would be in every log on the way.
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            **auth_headers(provider),
        }
        self._json_schema_refused = False
        """The server knows the older form of parameters alone: it gets that from then on."""
        self._outputs = Refusals()

    def model(self, name: str) -> GeminiModel:
        return GeminiModel(self, name)

    @asynccontextmanager
    async def answer(
        self, request: ModelRequest, owner: Owner, model: str
    ) -> AsyncGenerator[Answer]:
        """Send a request and give its answer, whose status is a success.

        Raises `ModelFailure`. A server that refuses ``parametersJsonSchema``, or a schema of the
        answer, is asked once more without.
        """
        json_schema = not self._json_schema_refused
        ask_output = self._outputs.level(model, request.output) == 0
        body = request_body(request, owner, model, json_schema=json_schema, ask_output=ask_output)
        deadlines = request.deadlines or self.provider.deadlines
        call = Call(self._url(model), self._headers, body, deadlines, self.origin, self.provider)
        async with self.http.exchange(call) as answer:
            if 200 <= answer.status < 300:
                yield answer
                return
            error = await answer.read_all(ERROR_BODY_BYTES_MAX)
            failure = failure_of_status(self.origin, answer.status, answer.headers, error)
        asks_output = ask_output and request.output is not None and b"responseMimeType" in body
        if answer.status == 400 and json_schema and any(name in error for name in _SCHEMA_REFUSED):
            self._json_schema_refused = True
        elif answer.status == 400 and asks_output and any(one in error for one in _OUTPUT_REFUSED):
            assert request.output is not None
            self._outputs.lower(model, request.output)
        else:
            if failure.status == 404:
                failure = await with_models_meant(self.http, self.provider, failure, model)
            raise failure
        async with self.answer(request, owner, model) as second:
            yield second

    def _url(self, model: str) -> str:
        # A name with a slash says its collection itself: tunedModels/x, publishers/google/models/y.
        path = quote(model if "/" in model else f"models/{model}", safe="/@")
        base = self.provider.base_url.rstrip("/")
        return f"{base}/{path}:streamGenerateContent?alt=sse"


class GeminiModel(ClientModel):
    def __init__(self, client: GeminiClient, model: str) -> None:
        super().__init__(client, model)
        self._client = client
        self._owner = Owner(self.provider, self.name, wants_signatures(model))

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages, self._owner)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        origin = self._client.origin
        decoder = GeminiDecoder(origin, ToolNames(tool.name for tool in request.tools))
        progress_s = (request.deadlines or self.deadlines).progress_s
        async with (
            self._client.answer(request, self._owner, self._model) as answer,
            read_events(answer, decoder, origin, progress_s) as events,
        ):
            yield events


def make_client(provider: Provider, http: Http) -> GeminiClient:
    return GeminiClient(provider, http)
