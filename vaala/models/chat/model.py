"""`ChatModel`: a model at a server that speaks OpenAI-compatible chat completions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from vaala.models.auth import auth_headers
from vaala.models.base import Deadlines, Message, ModelEvent, ModelRequest
from vaala.models.chat.decode import ChatDecoder
from vaala.models.chat.encode import Dialect, encode_messages, request_body
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

_HOSTS_OF_OPENAI = ("//api.openai.com", ".openai.azure.com")
"""Their newer models refuse ``max_tokens``; other servers know nothing else."""
_OUTPUT_REFUSED = (b"response_format", b"json_schema", b"json_object", b"schema", b"grammar")
"""What stands in a refusal of a schema: "This response_format type is unavailable now", "Invalid
schema for response_format", "json mode cannot be combined with tool/function calling"."""


class ChatClient(Client):
    """What all models of one provider share: its connections and what was learned of it."""

    def __init__(self, provider: Provider, http: Http) -> None:
        super().__init__(provider, http)
        self._url = f"{provider.base_url.rstrip('/')}/chat/completions"
        self._headers = {
            "content-type": "application/json",
            "accept": "text/event-stream",
            **auth_headers(provider),
        }
        modern = any(host in provider.base_url for host in _HOSTS_OF_OPENAI)
        self._dialect = Dialect(
            output_limit_field="max_completion_tokens" if modern else "max_tokens",
            calls_beside_output=modern,
        )
        self._outputs = Refusals()
        self._usage_refused = False
        """The server does not know ``stream_options``: it is left out from then on."""

    def model(self, name: str) -> ChatModel:
        return ChatModel(self, name)

    @asynccontextmanager
    async def answer(self, request: ModelRequest, model: str) -> AsyncGenerator[Answer]:
        """Send a request and give its answer, whose status is a success.

        Raises `ModelFailure`. A server that refuses ``stream_options``, or a way to ask for a
        document, is asked once more without.
        """
        deadlines = request.deadlines or self.provider.deadlines
        asks_usage = not self._usage_refused
        call, asks_output = self._call(request, model, deadlines)
        async with self.http.exchange(call) as answer:
            if 200 <= answer.status < 300:
                yield answer
                return
            body = await answer.read_all(ERROR_BODY_BYTES_MAX)
            failure = failure_of_status(self.origin, answer.status, answer.headers, body)
        refused = answer.status in (400, 422)
        if refused and asks_usage and b"stream_options" in body:
            self._usage_refused = True
        elif refused and asks_output and any(word in body for word in _OUTPUT_REFUSED):
            assert request.output is not None
            self._outputs.lower(model, request.output)
        else:
            if failure.status == 404 or (failure.status == 400 and b"model" in body.lower()):
                failure = await with_models_meant(self.http, self.provider, failure, model)
            raise failure
        async with self.answer(request, model) as second:
            yield second

    def _call(self, request: ModelRequest, model: str, deadlines: Deadlines) -> tuple[Call, bool]:
        """Return the call, and whether it has a field for the schema of the answer."""
        dialect = replace(
            self._dialect,
            usage_asked=not self._usage_refused,
            output_level=self._outputs.level(model, request.output),
        )
        body = request_body(request, model, dialect)
        call = Call(self._url, self._headers, body, deadlines, self.origin, self.provider)
        return call, request.output is not None and b'"response_format":{"type":"json_' in body


class ChatModel(ClientModel):
    def __init__(self, client: ChatClient, model: str) -> None:
        super().__init__(client, model)
        self._client = client

    def encode(self, messages: Sequence[Message]) -> bytes:
        return encode_messages(messages)

    @asynccontextmanager
    async def stream(self, request: ModelRequest) -> AsyncGenerator[AsyncIterator[ModelEvent]]:
        origin = self._client.origin
        decoder = ChatDecoder(origin, names_of(request.tools))
        progress_s = (request.deadlines or self.deadlines).progress_s
        async with (
            self._client.answer(request, self._model) as answer,
            read_events(answer, decoder, origin, progress_s) as events,
        ):
            yield events


make_client = ChatClient
