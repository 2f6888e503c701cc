"""`Catalogue`: what is known of models without asking anybody. Files are read when first needed."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from vaala.models.catalogue.facts import HostFacts, ModelFacts
from vaala.models.limits import CATALOGUE_BYTES_MAX
from vaala_protocol.prices import CatalogueSource

log = logging.getLogger(__name__)

REFRESHED_FILE = "catalogue.json"
"""The name of the file that `refresh` writes, in the state directory."""
_SHIPPED = Path(__file__).with_name("catalogue.json")
_SNAPSHOT = re.compile(r"-(?:\d{8}|\d{4}-\d{2}-\d{2})$")
"""The day at the end of a name, as in claude-haiku-4-5-20251001: its model is that without it."""


class Catalogue:
    """The shipped list, and before it the one at ``refreshed``, where there is one.

    A model is found by the host of its server, so that a name at a proxy of somebody else, with
    prices of its own, finds nothing.
    """

    def __init__(self, refreshed: Path | None = None) -> None:
        self._refreshed = refreshed

    def find(self, base_url: str, model: str) -> tuple[ModelFacts, CatalogueSource] | None:
        """Return what is known of a model and where from; None: nothing. Raises nothing."""
        for facts in self._at(base_url):
            found = facts.models.get(model) or facts.models.get(_SNAPSHOT.sub("", model))
            if found is not None:
                return found, facts.source
        return None

    def _at(self, base_url: str) -> Iterator[HostFacts]:
        try:
            host = urlsplit(base_url).hostname
        except ValueError:  # a bracket without its other half
            return
        yield from (facts for facts in self._hosts if facts.host == host)

    @cached_property
    def _hosts(self) -> tuple[HostFacts, ...]:
        shipped = msgspec.json.decode(_SHIPPED.read_bytes(), type=tuple[HostFacts, ...])
        refreshed = None if self._refreshed is None else read_refreshed(self._refreshed)
        return shipped if refreshed is None else (refreshed, *shipped)


def read_refreshed(file: Path) -> HostFacts | None:
    """Return what `refresh` wrote; None: nothing that can be read."""
    try:
        with file.open("rb") as opened:
            data = opened.read(CATALOGUE_BYTES_MAX + 1)
        if len(data) > CATALOGUE_BYTES_MAX:
            raise msgspec.DecodeError("it is too large")
        return msgspec.json.decode(data, type=HostFacts)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        log.warning("%s cannot be read, `vaala models refresh` makes it anew: %s", file, error)
        return None
