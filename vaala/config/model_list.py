"""Which models there are to choose from, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from vaala.config.config import Config
from vaala.models.catalogue.facts import Known
from vaala.models.choose import PROVIDERS, default_model, provider_of_environ, with_key
from vaala.models.provider import Provider
from vaala.models.set import ModelSet
from vaala_protocol.errors import BadRequest, ModelUnreachable, NotFound
from vaala_protocol.methods.catalog import ModelInfo, ModelListResult

_SCRIPTED = ModelInfo(name="scripted", provider="scripted", source="built in")


async def list_models(
    config: Config, models: ModelSet, environ: Mapping[str, str], keys: Mapping[str, str]
) -> ModelListResult:
    """Return the models that are known without asking anybody, and the default.

    ``keys`` are variables of providers that the client has: they go before ``environ``. To find
    the default a server may have to be asked: that takes some seconds at most.
    """
    known = _listed(config, environ, keys)
    try:
        model, why = await models.resolve_with(None, keys)
    except BadRequest as refused:
        told = tuple(with_facts(one, models.known(one.name, keys)) for one in known)
        return ModelListResult(models=told, reason=str(refused))
    if model.name not in {one.name for one in known}:
        source = why.partition(": ")[2]
        known.insert(0, ModelInfo(name=model.name, provider=model.provider, source=source))
    told = tuple(with_facts(one, models.known(one.name, keys)) for one in known)
    return ModelListResult(models=told, default=model.name, reason=why)


async def get_model(
    config: Config, models: ModelSet, environ: Mapping[str, str], keys: Mapping[str, str], name: str
) -> ModelInfo:
    """Return a model by name, after its server was asked what it says of it.

    Raises `NotFound` for a name that stands for no model, with the reason, and `ModelUnreachable`
    when only a server that does not answer could tell which model is meant.
    """
    info = next((one for one in _listed(config, environ, keys) if one.name == name), None)
    if info is None or (info.usable and info.name == info.provider != _SCRIPTED.provider):
        try:
            model, why = await models.resolve_with(name, keys)
        except ModelUnreachable:
            raise
        except BadRequest as refused:
            raise NotFound(str(refused)) from refused
        info = ModelInfo(name=model.name, provider=model.provider, source=why.partition(": ")[2])
    if not info.usable:
        return with_facts(info, models.known(info.name, keys))
    return with_facts(info, await models.ask(info.name, keys))


_FIELDS = {"window": "contextTokens", "output": "outputTokens"}
"""What facts are called on the wire, where it is another word."""


def with_facts(info: ModelInfo, known: Known) -> ModelInfo:
    """Add what is known of a model, and who says it."""
    facts = known.facts
    return replace(
        info,
        context_tokens=facts.window,
        output_tokens=facts.output,
        features=facts.features,
        prices=facts.prices,
        facts={_FIELDS.get(name, name): source for name, source in known.sources.items()},
        catalogue=known.catalogue,
    )


def _listed(config: Config, environ: Mapping[str, str], keys: Mapping[str, str]) -> list[ModelInfo]:
    return [*_configured(config, keys), *_of_variables(config, environ, keys), _SCRIPTED]


def _configured(config: Config, keys: Mapping[str, str]) -> Iterator[ModelInfo]:
    for provider in config.providers:
        keyed = with_key(provider, keys) is not provider
        reason = "" if keyed else config.unusable.get(provider.name, "")
        for model in provider.models:
            yield _info(provider, model, "providers.yaml", reason)
        if not provider.models:
            yield ModelInfo(
                name=provider.name,
                provider=provider.name,
                source="providers.yaml",
                usable=not reason,
                reason=reason,
            )


def _of_variables(
    config: Config, environ: Mapping[str, str], keys: Mapping[str, str]
) -> Iterator[ModelInfo]:
    """Yield what keys that are set stand for, where the configuration does not say else."""
    configured = {provider.name for provider in config.providers}
    for name in PROVIDERS:
        if name in configured:
            continue
        try:
            found = _of_variable(name, keys, " at the client") or _of_variable(name, environ, "")
        except BadRequest as refused:
            found = ModelInfo(name=name, provider=name, usable=False, reason=str(refused))
        if found is not None:
            yield found


def _of_variable(name: str, variables: Mapping[str, str], where: str) -> ModelInfo | None:
    """Return what a key stands for; raises `BadRequest` for a base URL that is none."""
    provider = provider_of_environ(name, variables)
    if provider is None:
        return None
    variable = provider.key_from if provider.key else provider.url_from
    source = f"the variable {variable}{where}"
    model = default_model(provider)
    if model is None:
        return ModelInfo(name=name, provider=name, source=source)
    return _info(provider, model, source, "")


def _info(provider: Provider, model: str, source: str, reason: str) -> ModelInfo:
    return ModelInfo(
        name=f"{provider.name}/{model}",
        provider=provider.name,
        source=source,
        usable=not reason,
        reason=reason,
    )
