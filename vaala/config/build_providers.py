"""From providers.yaml and secrets.yaml to providers: looks up keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from vaala.config.build_options import option_problems
from vaala.config.check import did_you_mean, problem
from vaala.config.concealed import holds_secret
from vaala.config.errors import Problem
from vaala.config.read import Checked
from vaala.config.schema import PricesSection, ProviderSection, ProvidersFile
from vaala.models.base import Deadlines
from vaala.models.catalogue.reported import decimal_text
from vaala.models.options import Defaults
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala_protocol.prices import ModelPrices

_KEYS = ("api_key", "api_key_env", "api_key_secret")
OTHERS = 0o077
"""The bits of a mode that let others than the owner at a file."""


def build_providers(
    file: Checked[ProvidersFile], secrets: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Provider, ...]:
    """Return the providers; for those that ``key_problems`` names nothing is promised."""
    return tuple(
        _provider(name, section, secrets, environ) for name, section in file.values.root.items()
    )


def _provider(
    name: str,
    section: ProviderSection,
    secrets: Mapping[str, str],
    environ: Mapping[str, str],
) -> Provider:
    key, key_from = section.api_key, "providers.yaml"
    if section.api_key_env is not None:
        key, key_from = environ.get(section.api_key_env), section.api_key_env
    elif section.api_key_secret is not None:
        key, key_from = secrets.get(section.api_key_secret), "secrets.yaml"
    return Provider(
        name=name,
        base_url=section.base_url.rstrip("/"),
        api=section.api,
        key=Secret(key) if key else None,
        headers={header: Secret(value) for header, value in section.headers.items()},
        models=tuple(section.models),
        windows=dict(section.windows),
        prices={model: _prices(each) for model, each in section.prices.items()},
        deadlines=Deadlines(**section.deadlines.model_dump()),
        defaults=Defaults(section.effort, dict(section.options)),
        model_defaults={
            model: Defaults(each.effort, dict(each.options))
            for model, each in section.model_settings.items()
        },
        url_from="providers.yaml",
        key_from=key_from,
    )


def _prices(section: PricesSection) -> ModelPrices:
    values = (section.input, section.cache_read, section.cache_write, section.output)
    # The shortest text that stands for a number is the one that was typed.
    read, cached, kept, written = (
        decimal_text(Decimal(repr(section.input if value is None else value))) for value in values
    )
    return ModelPrices(input=read, cache_read=cached, cache_write=kept, output=written)


def setting_problems(file: Checked[ProvidersFile]) -> Iterator[Problem]:
    """Yield the options that can be sent to no model, and settings of models that it has not."""
    document = file.document
    for name, section in file.values.root.items():
        yield from option_problems(document, (name, "options"), section.options)
        for model, each in section.model_settings.items():
            way = (name, "model_settings", model)
            yield from option_problems(document, (*way, "options"), each.options)
            if section.models and model not in section.models:
                guess = did_you_mean(model, section.models) or _listed(section.models)
                yield problem(document, way, f"{name} has no model {model!r} in models{guess}")


def unusable(file: Checked[ProvidersFile], environ: Mapping[str, str]) -> dict[str, str]:
    """A missing key is no problem of the file: another provider may be the one that is used."""
    return {
        name: f"the environment variable {section.api_key_env} is not set"
        for name, section in file.values.root.items()
        if section.api_key_env is not None and not environ.get(section.api_key_env)
    }


def key_problems(file: Checked[ProvidersFile], secrets: Mapping[str, str]) -> Iterator[Problem]:
    """Yield where two places are named for a key, or one that is not there."""
    for name, section in file.values.root.items():
        given = [key for key in _KEYS if getattr(section, key) is not None]
        if len(given) > 1:
            text = f"stands beside {given[1]}; keep one of the two"
            yield problem(file.document, (name, given[0]), text)
        wanted = section.api_key_secret
        if wanted is not None and wanted not in secrets:
            known = did_you_mean(wanted, list(secrets)) or _listed(list(secrets))
            text = f"secrets.yaml has no secret {wanted!r}{known}"
            yield problem(file.document, (name, "api_key_secret"), text)


def _listed(names: list[str]) -> str:
    return f"; there are {', '.join(names)}" if names else ": add it there"


def key_remarks(file: Checked[ProvidersFile], environ: Mapping[str, str]) -> Iterator[Problem]:
    """Yield what makes a provider unusable now, and keys that others can read."""
    for name, section in file.values.root.items():
        if section.api_key_env is not None and not environ.get(section.api_key_env):
            text = f"the environment variable {section.api_key_env} is not set"
            yield problem(file.document, (name, "api_key_env"), text)
    document = file.document
    if holds_secret(document.file.name, document.values):
        yield from openness(document.file)


def openness(file: Path) -> Iterator[Problem]:
    """Yield that a file with secrets can be read or changed by others, and how to end that."""
    try:
        mode = file.stat().st_mode & 0o777
    except OSError:  # it is not there, or gone again
        return
    if mode & OTHERS:
        text = f"holds secrets and others can use it (mode {mode:04o}): chmod 600 {file}"
        yield Problem(file, None, "", text)
