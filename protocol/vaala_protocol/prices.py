"""Prices of models and what was paid. Money is a decimal string in US dollars: never a float."""

from __future__ import annotations

from typing import Literal, TypeAlias

from vaala_protocol.base import Value

Feature: TypeAlias = Literal["tools", "images", "reasoning"]
FactSource: TypeAlias = Literal["config", "server", "catalogue"]
"""Who says it: providers.yaml, the server of the models, or the catalogue that is shipped."""


class LongPrices(Value, frozen=True, kw_only=True):
    """What every token of a call costs whose prompt is long. What is left out is not known."""

    above_tokens: int
    """A prompt with more than this is long; what is read from and written to caches counts."""
    input: str | None = None
    cache_read: str | None = None
    cache_write: str | None = None
    output: str | None = None


class ModelPrices(Value, frozen=True, kw_only=True):
    """US dollars for a million tokens, by class; reasoning costs what output does.

    What is left out is not known. ``until``: the last day, in UTC, that they hold for.
    """

    input: str | None = None
    cache_read: str | None = None
    cache_write: str | None = None
    output: str | None = None
    long: LongPrices | None = None
    until: str | None = None


class CatalogueSource(Value, frozen=True, kw_only=True):
    """Where the catalogue has the figures of a model from."""

    url: str
    as_of: str
    """The day that they are of, as in ``2026-11-10``."""


class Cost(Value, frozen=True, kw_only=True):
    usd: str
    """A decimal number, as in ``0.0421``."""
    at_least: bool = False
    """The price of some of the tokens is not known: it was more."""
