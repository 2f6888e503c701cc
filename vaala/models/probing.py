"""Finds out how a server is spoken to whose URL is all that is known."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from vaala.models.base import ModelFailure
from vaala.models.catalogue.facts import ModelFacts
from vaala.models.choose import PROVIDERS
from vaala.models.http import Http
from vaala.models.listing import list_facts
from vaala.models.provider import Api, Provider

_ENDINGS = ("/chat/completions", "/responses", "/messages", "/models")
"""What people copy along with a base URL."""
_APIS: tuple[Api, ...] = ("chat", "anthropic", "gemini")
"""In the order in which they are tried. Responses lists models as chat does, and is less spoken."""


class Spoken(Struct, frozen=True):
    """A provider with the URL and the format that its server answered to, and its models."""

    provider: Provider
    models: dict[str, ModelFacts]


def known_api(url: str) -> Api | None:
    """Return the wire format of a server that is known by its host."""
    host = urlsplit(url).hostname
    for known in PROVIDERS.values():
        if urlsplit(known.url).hostname == host:
            return known.api
    return None


def bare_url(url: str) -> str:
    """Return a URL without the path of an API at its end."""
    url = url.rstrip("/")
    ending = next((one for one in _ENDINGS if url.endswith(one)), "")
    return url.removesuffix(ending)


async def find_format(http: Http, provider: Provider, api: Api | None) -> Spoken:
    """Ask a server for its models, in each format that it may have, until it tells them.

    ``api`` None: the format is not known. A URL without a path may lack its ``/v1``. Raises the
    `ModelFailure` that tells most: of a key that was refused, else of the first try.
    """
    failures: list[ModelFailure] = []
    for candidate in _candidates(provider, api):
        try:
            return Spoken(candidate, await list_facts(http, candidate))
        except ModelFailure as failure:
            failures.append(failure)
            if failure.status is None and failure.kind in ("network", "auth"):
                break  # nobody answers, or there is no key to ask with
    raise next((one for one in failures if one.kind == "auth"), failures[0])


def _candidates(provider: Provider, api: Api | None) -> Iterator[Provider]:
    url = provider.base_url
    known = api or known_api(url)
    for base in (url,) if urlsplit(url).path.strip("/") else (f"{url}/v1", url):
        for each in _APIS if known is None else (known,):
            yield replace(provider, base_url=base, api=each)
