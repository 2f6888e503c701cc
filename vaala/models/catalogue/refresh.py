"""`refresh`: takes the list of OpenRouter, which tells windows and prices to everybody.

It counts for OpenRouter alone: other servers of the same models have prices of their own.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from vaala.models.base import Deadlines
from vaala.models.catalogue.facts import HostFacts
from vaala.models.failures import Origin, failure_of_kind, failure_of_status
from vaala.models.http import Call, Http
from vaala.models.limits import CATALOGUE_BYTES_MAX, LIST_S
from vaala.models.listing import listed_models
from vaala_protocol.base import encode
from vaala_protocol.prices import CatalogueSource

LIST_URL = "https://openrouter.ai/api/v1/models"
"""Needs no key (openrouter.ai/docs/models)."""
_HOST = "openrouter.ai"
_ACCEPT: Mapping[str, str] = {"accept": "application/json"}


async def fetch_list(http: Http, day: str, url: str = LIST_URL) -> HostFacts:
    """Return the list as it is now; ``day`` is today's date. Raises `ModelFailure`."""
    origin = Origin("openrouter", (), "", "")
    deadlines = Deadlines(first_byte_s=LIST_S, silence_s=LIST_S)
    async with http.exchange(Call(url, _ACCEPT, None, deadlines, origin)) as answer:
        body = await answer.read_all(CATALOGUE_BYTES_MAX)
    if answer.status != 200:
        raise failure_of_status(origin, answer.status, answer.headers, body)
    models = listed_models(body)
    if not any(facts.prices for facts in models.values()):
        raise failure_of_kind(origin, "invalid_request", f"{url} lists no model with a price")
    return HostFacts(host=_HOST, source=CatalogueSource(url=url, as_of=day), models=models)


def write_list(facts: HostFacts, file: Path) -> None:
    """Put the list in place of the one before, whole or not at all.

    Makes the directory. Raises ``OSError``, with nothing changed.
    """
    file.parent.mkdir(0o700, parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(encode(facts))
            opened.flush()
            os.fsync(opened.fileno())
        Path(name).replace(file)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
