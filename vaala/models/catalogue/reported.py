"""What servers say of their models in the entries of ``/models``. Pure, and total over garbage.

Anthropic   max_input_tokens, max_tokens (platform.claude.com/docs/en/models)
Gemini      inputTokenLimit, outputTokenLimit, thinking (ai.google.dev/api/models)
OpenRouter  context_length, top_provider, architecture, supported_parameters, pricing
            (openrouter.ai/docs/models)
others      max_model_len (vLLM), context_window and max_completion_tokens (Groq),
            max_context_length (Mistral), loaded_context_length (LM Studio)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vaala.models.catalogue.facts import ModelFacts
from vaala.models.limits import PRICE_USD_MAX, TOKENS_MAX
from vaala_protocol.prices import Feature, ModelPrices

if TYPE_CHECKING:
    from decimal import Decimal

_WINDOW = (
    "loaded_context_length",  # what is in force, where the most that is possible stands beside it
    "context_length",
    "context_window",
    "max_model_len",
    "max_context_length",
    "inputTokenLimit",
    "max_input_tokens",
)
_OUTPUT = ("outputTokenLimit", "max_completion_tokens", "max_tokens")
_PER_MILLION = 1_000_000


def reported_facts(entry: Mapping[str, Any]) -> ModelFacts:
    """Return what an entry says of its model; what makes no sense is left out."""
    top = _object(entry, "top_provider")
    return ModelFacts(
        window=_first(entry, _WINDOW),
        output=_first(top, ("max_completion_tokens",)) or _first(entry, _OUTPUT),
        features=_features(entry),
        prices=_prices(_object(entry, "pricing")),
    )


def _first(entry: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for name in names:
        value = entry.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= TOKENS_MAX:
            return value
    return None


def _features(entry: Mapping[str, Any]) -> tuple[Feature, ...] | None:
    """Return what a model can do, where the server says that of all features."""
    parameters = entry.get("supported_parameters")
    inputs = _object(entry, "architecture").get("input_modalities")
    if not isinstance(parameters, list) or not isinstance(inputs, list):
        return None
    found: list[Feature] = []
    if "tools" in parameters:
        found.append("tools")
    if "image" in inputs:
        found.append("images")
    if "reasoning" in parameters:
        found.append("reasoning")
    return tuple(found)


def _prices(pricing: Mapping[str, Any]) -> ModelPrices | None:
    """Return the prices of OpenRouter's shape: dollars for one token, as text."""
    prices = ModelPrices(
        input=_price(pricing, "prompt"),
        cache_read=_price(pricing, "input_cache_read"),
        cache_write=_price(pricing, "input_cache_write"),
        output=_price(pricing, "completion"),
    )
    return None if prices.input is None or prices.output is None else prices


def _price(pricing: Mapping[str, Any], name: str) -> str | None:
    text = pricing.get(name)
    if not isinstance(text, str) or len(text) > 40:
        return None
    from decimal import Decimal  # 2 ms, and few servers tell prices

    try:
        price = Decimal(text) * _PER_MILLION
    except ArithmeticError:  # it is no number, or one without measure
        return None
    # A router that chooses a model by itself has -1.
    if not price.is_finite() or not 0 <= price <= PRICE_USD_MAX:
        return None
    return decimal_text(price)


def decimal_text(number: Decimal) -> str:
    """Return a number without an exponent and without zeros that say nothing."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _object(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = entry.get(name)
    return value if isinstance(value, dict) else {}
