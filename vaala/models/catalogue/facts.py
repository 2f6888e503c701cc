"""What can be known of a model, and what counts when several say it. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from vaala_protocol.base import Value
from vaala_protocol.prices import CatalogueSource, FactSource, Feature, ModelPrices


class ModelFacts(Value, frozen=True, kw_only=True):
    """What one source says of a model; None: nothing. Limits are in tokens."""

    window: int | None = None
    output: int | None = None
    """The most that one answer can have."""
    features: tuple[Feature, ...] | None = None
    prices: ModelPrices | None = None


class HostFacts(Value, frozen=True, kw_only=True):
    """What a catalogue says of the models behind one host."""

    host: str
    source: CatalogueSource
    models: dict[str, ModelFacts]


class Known(Struct, frozen=True):
    """What is known of a model, from all who say something of it."""

    facts: ModelFacts = ModelFacts()
    sources: dict[str, FactSource] = {}
    """Who says it, by the name of the field in `ModelFacts`."""
    catalogue: CatalogueSource | None = None
    """Where the catalogue has it from, when any of it is from there."""


def known(
    said: Iterable[tuple[FactSource, ModelFacts]], catalogue: CatalogueSource | None
) -> Known:
    """Return for each field what the first one says that says something."""
    fields: dict[str, object] = {}
    sources: dict[str, FactSource] = {}
    for source, facts in said:
        for name in ModelFacts.__struct_fields__:
            value = getattr(facts, name)
            if value is not None and name not in fields:
                fields[name] = value
                sources[name] = source
    used = catalogue if "catalogue" in sources.values() else None
    return Known(ModelFacts(**fields), sources, used)  # type: ignore[arg-type]  # names its fields
