"""`Provider`: where models are, how to speak to them, and with which key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias
from urllib.parse import quote, unquote

from msgspec import Struct, field

from vaala.models.base import Deadlines
from vaala.models.keys.source import KeySource
from vaala.models.options import Defaults
from vaala.models.secret import Secret
from vaala_protocol.prices import ModelPrices

Api: TypeAlias = Literal["chat", "anthropic", "responses", "gemini"]
"""The wire format: OpenAI-compatible chat completions, Anthropic Messages, OpenAI Responses,
Gemini generateContent."""


Trust: TypeAlias = Literal["bundled", "system"]
"""Whose certificates count: those that come with vaala, or those that the system trusts."""


class Route(Struct, frozen=True):
    """How a server is reached, where the environment does not decide it."""

    proxy: Secret | None = None
    """The URL of the proxy; empty: none. None: that of the environment, if any."""
    ca_file: str = ""
    """Where ``ca`` was read from; for people."""
    ca: str = ""
    """Certificates in PEM form that count in place of those that come with vaala; empty: none."""
    trust: Trust | None = None
    """None: bundled ones, unless SSL_CERT_FILE or SSL_CERT_DIR names others."""


class Provider(Struct, frozen=True):
    """A provider of models, as configured.

    ``base_url`` is what the paths of the API are appended to, "https://api.openai.com/v1".
    ``models`` lists the names that it offers, the default first; empty: not known, any name is
    passed on. ``windows`` gives the context window of a model in tokens, and ``prices`` what it
    costs, where that is said; both go before what server and catalogue say.
    """

    name: str
    base_url: str
    api: Api = "chat"
    key: Secret | None = None
    key_source: KeySource | None = None
    """Where the key is asked for when it is first needed; ``key`` is None then."""
    headers: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    """Sent with each request; secrets, since keys travel in headers of many names."""
    query: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    """Parameters of the URL of each request; secrets, for the same reason."""
    route: Route = Route()
    models: tuple[str, ...] = ()
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    prices: Mapping[str, ModelPrices] = field(default_factory=dict[str, ModelPrices])
    deadlines: Deadlines = Deadlines()
    requests_max: int | None = None
    """Calls at the same time; None: any number."""
    defaults: Defaults = Defaults()
    """For every model of it."""
    model_defaults: Mapping[str, Defaults] = field(default_factory=dict[str, Defaults])
    """For one of them; what it leaves open is that of all."""
    url_from: str = ""
    """Where the base URL was taken from, such as a variable of the environment; for people."""
    key_from: str = ""
    """The variable, or whatever else, that holds the key, or would."""

    def defaults_of(self, model: str) -> Defaults:
        """Return what a model is asked with where nobody says otherwise."""
        return self.model_defaults.get(model, Defaults()).over(self.defaults)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        """Everything that no text may show; a key that is not known yet is not among them."""
        keys = () if self.key is None else (self.key,)
        # In the text of an error a parameter may stand as it does in the URL.
        quoted = (Secret(quote(value.reveal(), safe="")) for value in self.query.values())
        proxy = "" if self.route.proxy is None else self.route.proxy.reveal()
        user, at, _ = proxy.rpartition("://")[2].rpartition("@")
        passwords = (Secret(user), Secret(unquote(user.partition(":")[2]))) if at else ()
        return (*keys, *self.headers.values(), *self.query.values(), *quoted, *passwords)
