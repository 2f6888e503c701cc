"""Which models there are to choose from, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vaala.config.config import Config
from vaala.models.base import Models
from vaala.models.choose import default_model, provider_of_environ
from vaala.models.provider import Provider
from vaala_protocol.errors import BadRequest
from vaala_protocol.methods.catalog import ModelInfo, ModelListResult

_OF_ENVIRON = ("openai", "openrouter")


async def list_models(
    config: Config, models: Models, environ: Mapping[str, str]
) -> ModelListResult:
    """Return the models that are known without asking anybody, and the default.

    To find the default a server may have to be asked: that takes some seconds at most.
    """
    known = [*_configured(config), *_of_environ(config, environ)]
    known.append(ModelInfo(name="scripted", provider="scripted", source="built in"))
    try:
        model, why = await models.resolve(None)
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


def _configured(config: Config) -> Iterator[ModelInfo]:
    for provider in config.providers:
        reason = config.unusable.get(provider.name, "")
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


def _of_environ(config: Config, environ: Mapping[str, str]) -> Iterator[ModelInfo]:
    """Yield what keys of the environment stand for, where the configuration does not say else."""
    configured = {provider.name for provider in config.providers}
    for name in _OF_ENVIRON:
        try:
            provider = None if name in configured else provider_of_environ(name, environ)
        except BadRequest as refused:
            yield ModelInfo(name=name, provider=name, usable=False, reason=str(refused))
            continue
        if provider is not None:
            source = f"the variable {provider.key_from if provider.key else 'OPENAI_BASE_URL'}"
            model = default_model(provider)
            if model is None:
                yield ModelInfo(name=name, provider=name, source=source)
            else:
                yield _info(provider, model, source, "")


def _info(provider: Provider, model: str, source: str, reason: str) -> ModelInfo:
    return ModelInfo(
        name=f"{provider.name}/{model}",
        provider=provider.name,
        source=source,
        context_tokens=provider.windows.get(model),
        usable=not reason,
        reason=reason,
    )
