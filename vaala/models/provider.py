"""`Provider`: where models are, how to speak to them, and with which key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct, field

from vaala.models.base import Deadlines
from vaala.models.options import Defaults
from vaala.models.secret import Secret
from vaala_protocol.prices import ModelPrices

Api: TypeAlias = Literal["chat", "anthropic", "responses", "gemini"]
"""The wire format: OpenAI-compatible chat completions, Anthropic Messages, OpenAI Responses,
Gemini generateContent."""


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
    headers: Mapping[str, Secret] = field(default_factory=dict[str, Secret])
    """Sent with each request; secrets, since keys travel in headers of many names."""
    models: tuple[str, ...] = ()
    windows: Mapping[str, int] = field(default_factory=dict[str, int])
    prices: Mapping[str, ModelPrices] = field(default_factory=dict[str, ModelPrices])
    deadlines: Deadlines = Deadlines()
    defaults: Defaults = Defaults()
    """For every model of it."""
    model_defaults: Mapping[str, Defaults] = field(default_factory=dict[str, Defaults])
    """For one of them; what it leaves open is that of all."""
    url_from: str = ""
    """Where the base URL was taken from, such as a variable of the environment; for people."""
    key_from: str = ""
    """The variable that holds the key, or would."""

    def defaults_of(self, model: str) -> Defaults:
        """Return what a model is asked with where nobody says otherwise."""
        return self.model_defaults.get(model, Defaults()).over(self.defaults)

    @property
    def secrets(self) -> tuple[Secret, ...]:
        keys = () if self.key is None else (self.key,)
        return (*keys, *self.headers.values())
