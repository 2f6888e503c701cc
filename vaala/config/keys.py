"""Which providers can be used with which environment. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from vaala.config.config import Config
from vaala.models.provider import Provider
from vaala.models.secret import Secret


def with_environ(config: Config, environ: Mapping[str, str]) -> Config:
    """Return the configuration with the keys that this environment holds, and no other."""
    variables = frozenset(config.key_variables)
    return msgspec.structs.replace(
        config,
        providers=tuple(_with_key(one, variables, environ) for one in config.providers),
        unusable=unusable(config.providers, variables, environ),
    )


def unusable(
    providers: Iterable[Provider], variables: frozenset[str], environ: Mapping[str, str]
) -> dict[str, str]:
    """A missing key is no problem of the file: another provider may be the one that is used."""
    return {
        one.name: f"the environment variable {one.key_from} is not set"
        for one in providers
        if one.key_from in variables and not environ.get(one.key_from)
    }


def _with_key(
    provider: Provider, variables: frozenset[str], environ: Mapping[str, str]
) -> Provider:
    if provider.key_from not in variables:
        return provider
    key = environ.get(provider.key_from)
    return msgspec.structs.replace(provider, key=Secret(key) if key else None)
