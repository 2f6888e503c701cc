"""Which models there are to choose from, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vaala.config.config import Config
from vaala.models.base import Models
from vaala.models.choose import PROVIDERS, default_model, provider_of_environ, with_key
from vaala.models.provider import Provider
from vaala_protocol.errors import BadRequest
from vaala_protocol.methods.catalog import ModelInfo, ModelListResult


async def list_models(
    config: Config, models: Models, environ: Mapping[str, str], keys: Mapping[str, str]
) -> ModelListResult:
    """Return the models that are known without asking anybody, and the default.

    ``keys`` are variables of providers that the client has: they go before ``environ``. To find
    the default a server may have to be asked: that takes some seconds at most.
    """
    known = [*_configured(config, keys), *_of_variables(config, environ, keys)]
    known.append(ModelInfo(name="scripted", provider="scripted", source="built in"))
    try:
        model, why = await models.resolve_with(None, keys)
    except BadRequest as refused:
        return ModelListResult(models=tuple(known), reason=str(refused))
    if model.name not in {one.name for one in known}:
        found = ModelInfo(
            name=model.name,
            provider=model.provider,
            source=why.partition(": ")[2],
            context_tokens=model.window_tokens,
        )
        known.insert(0, found)
    return ModelListResult(models=tuple(known), default=model.name, reason=why)


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
        context_tokens=provider.windows.get(model),
        usable=not reason,
        reason=reason,
    )
