"""`Client`: a provider of models as one wire format speaks to it, and the models it gives."""

from __future__ import annotations

import importlib
import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import cast
from urllib.parse import urlsplit

from vaala.models.base import Deadlines, Model
from vaala.models.http import BEHIND_THE_SEAM, Http
from vaala.models.limiter import Limiter
from vaala.models.options import Defaults
from vaala.models.provider import Provider


class Client(ABC):
    """What all models of one provider share: its connections and what was learned of it."""

    def __init__(self, provider: Provider, http: Http) -> None:
        self.provider = provider
        self.http = http
        self.origin = http.origin(provider)
        self.limiter = http.limiters.of(provider)
        self.windows = dict(provider.windows)
        """In tokens, by model: what the configuration says and what has become known."""

    @abstractmethod
    def model(self, name: str) -> Model:
        """Return the model that the provider calls ``name``; nobody is asked whether it exists."""


class ClientModel(Model):
    """A model of a `Client`; what is the same for every wire format."""

    def __init__(self, client: Client, model: str) -> None:
        self._provider = client.provider
        self._windows = client.windows
        self._limiter = client.limiter
        self._model = model
        """Its name at the provider."""

    @property
    def name(self) -> str:
        return f"{self._provider.name}/{self._model}"

    @property
    def provider(self) -> str:
        return self._provider.name

    @property
    def api(self) -> str:
        return self._provider.api

    @property
    def window_tokens(self) -> int | None:
        return self._windows.get(self._model)

    @property
    def is_near(self) -> bool:
        return is_near(self._provider.base_url)

    @property
    def defaults(self) -> Defaults:
        return self._provider.defaults_of(self._model)

    @property
    def deadlines(self) -> Deadlines:
        return self._provider.deadlines

    @property
    def limiter(self) -> Limiter:
        return self._limiter


def is_near(base_url: str) -> bool:
    """Tell whether a server is on this machine or has an address of a private network."""
    try:
        host = urlsplit(base_url).hostname or ""
    except ValueError:  # a bracket without its other half
        return False
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_private


def client_for(provider: Provider, http: Http) -> Client:
    """Return a client that speaks the provider's wire format; its modules are imported here.

    A wire format is a folder beside this file; its ``model`` has ``make_client(provider, http)``.
    Raises `Upgraded` when it would come from another version of vaala.
    """
    module = f"vaala.models.{provider.api}.model"
    http.package.check(module, *BEHIND_THE_SEAM)
    make = cast("Callable[[Provider, Http], Client]", importlib.import_module(module).make_client)
    return make(provider, http)
