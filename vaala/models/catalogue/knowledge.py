"""`Knowledge`: what configuration, servers and catalogue say of models, in this order."""

from __future__ import annotations

from collections.abc import Mapping

from vaala.models.catalogue.catalogue import Catalogue
from vaala.models.catalogue.facts import Known, ModelFacts, known
from vaala.models.limits import CLIENTS_MAX
from vaala.models.provider import Provider


class Knowledge:
    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._told: dict[str, Mapping[str, ModelFacts]] = {}
        """What servers have said, by base URL; the one that spoke last stands last."""

    def told(self, provider: Provider, listed: Mapping[str, ModelFacts]) -> None:
        """Take what a server says of its models, in place of what it said before."""
        self._told.pop(provider.base_url, None)
        self._told[provider.base_url] = listed
        if len(self._told) > CLIENTS_MAX:
            del self._told[next(iter(self._told))]

    def of(self, provider: Provider, model: str) -> Known:
        """Return what is known of a model, without asking anybody."""
        said = ModelFacts(window=provider.windows.get(model), prices=provider.prices.get(model))
        server = self._told.get(provider.base_url, {}).get(model, ModelFacts())
        found = self._catalogue.find(provider.base_url, model)
        shipped, source = (ModelFacts(), None) if found is None else found
        return known([("config", said), ("server", server), ("catalogue", shipped)], source)
