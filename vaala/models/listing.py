"""What models a server has, and what it says of them, by its ``/models``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from msgspec import Struct
from msgspec.structs import replace

from vaala.models.auth import auth_headers
from vaala.models.base import Deadlines, ModelFailure
from vaala.models.catalogue.facts import ModelFacts
from vaala.models.catalogue.reported import reported_facts
from vaala.models.failures import failure_of_kind, failure_of_status
from vaala.models.http import Call, Http
from vaala.models.limits import (
    ANSWER_BYTES_MAX,
    CATALOGUE_MODELS_MAX,
    LIST_S,
    MODEL_NAME_CHARS_MAX,
    PROBE_S,
)
from vaala.models.provider import Provider
from vaala_protocol.base import Malformed, decode


class LocalServer(Struct, frozen=True):
    """A place where a model server listens by default."""

    name: str
    port: int
    title: str

    @property
    def provider(self) -> Provider:
        # A local model reads a long prompt for minutes before its first word.
        patient = Deadlines(first_byte_s=600.0, silence_s=300.0)
        return Provider(self.name, f"http://127.0.0.1:{self.port}/v1", deadlines=patient)


_PAGE = {"anthropic": "?limit=1000", "gemini": "?pageSize=1000"}
"""The most that a page of their lists may have, more than they have models; the others have no
pages (platform.claude.com/docs/en/api/models-list, ai.google.dev/api/models)."""

LOCAL_SERVERS = (
    LocalServer("ollama", 11434, "Ollama"),
    LocalServer("llamacpp", 8080, "llama.cpp"),
    LocalServer("lmstudio", 1234, "LM Studio"),
)


async def list_models(http: Http, provider: Provider) -> list[str]:
    """Return the names of the models that can answer, as `list_facts` does."""
    return list(await list_facts(http, provider))


async def list_facts(http: Http, provider: Provider) -> dict[str, ModelFacts]:
    """Return what a server says of its models that can answer, in its order, at least one.

    Raises `ModelFailure`; takes at most `LIST_S` after the connection.
    """
    origin = http.origin(provider)
    deadlines = replace(provider.deadlines, first_byte_s=LIST_S, silence_s=LIST_S)
    url = f"{provider.base_url.rstrip('/')}/models"
    headers = auth_headers(provider)
    call = Call(url + _PAGE.get(provider.api, ""), headers, None, deadlines, origin, provider)
    async with http.exchange(call) as answer:
        body = await answer.read_all(ANSWER_BYTES_MAX)
    if answer.status != 200:
        raise failure_of_status(origin, answer.status, answer.headers, body)
    listed = listed_models(body)
    if not listed:
        raise failure_of_kind(origin, "invalid_request", f"{url} lists no model that can answer")
    return listed


async def probe(
    http: Http, servers: Sequence[LocalServer]
) -> tuple[LocalServer, dict[str, ModelFacts]] | None:
    """Return the first server, in the order given, that has a model, and its models.

    All are asked side by side and have `PROBE_S` together.
    """
    await http.load()
    found: dict[LocalServer, dict[str, ModelFacts]] = {}

    async def ask(server: LocalServer) -> None:
        try:
            found[server] = await list_facts(http, server.provider)
        except ModelFailure:
            return

    with trio.move_on_after(PROBE_S):
        async with trio.open_nursery() as nursery:
            for server in servers:
                nursery.start_soon(ask, server)
    return next(((server, found[server]) for server in servers if server in found), None)


async def with_models_meant(
    http: Http, provider: Provider, failure: ModelFailure, model: str
) -> ModelFailure:
    """Add to a failure what was perhaps meant, when its server does not know ``model``, but lists
    others. Takes at most `LIST_S` after the connection."""
    try:
        known = await list_models(http, provider)
    except ModelFailure:
        return failure
    if model in known:
        return failure
    import difflib  # only where a model is unknown

    close = difflib.get_close_matches(model, known, n=3, cutoff=0.5) or known[:3]
    meant = ", ".join(f"{provider.name}/{name}" for name in close)
    text = f"{failure.message}; did you mean {meant}?"
    return ModelFailure(failure.kind, text, status=failure.status)


def listed_models(body: bytes) -> dict[str, ModelFacts]:
    """Return the models that can answer of a list of models, at most `CATALOGUE_MODELS_MAX`."""
    try:
        document = decode(body)
    except Malformed:
        return {}
    entries: Any = document
    if isinstance(document, dict):
        entries = document.get("data", document.get("models"))
    if not isinstance(entries, list):
        return {}
    listed: dict[str, ModelFacts] = {}
    for entry in entries:
        if len(listed) == CATALOGUE_MODELS_MAX:
            break
        # Servers list their embedding models too, and those cannot talk.
        if isinstance(entry, dict) and (name := _name(entry)) and "embed" not in name:
            listed[name] = reported_facts(entry)
    return listed


def _name(entry: dict[str, Any]) -> str:
    """Return the name of a model that can answer, "" for any other. Google says what it can do."""
    name = entry.get("id", entry.get("name"))
    if not isinstance(name, str) or len(name) > MODEL_NAME_CHARS_MAX:
        return ""
    methods = entry.get("supportedGenerationMethods")
    can_answer = not isinstance(methods, list) or "generateContent" in methods
    return name.removeprefix("models/") if can_answer else ""
