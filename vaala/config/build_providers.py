"""From providers.yaml and secrets.yaml to providers: looks up keys, or where to ask for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from vaala.config.build_options import option_problems
from vaala.config.build_routes import key_source, named_path, route_of
from vaala.config.check import did_you_mean, problem
from vaala.config.concealed import holds_secret
from vaala.config.errors import Problem
from vaala.config.read import Checked
from vaala.config.schema import PricesSection, ProviderSection, ProvidersFile
from vaala.discovery.environment import KEY_VARIABLES
from vaala.models.base import Deadlines
from vaala.models.catalogue.reported import decimal_text
from vaala.models.keys.places import KEYRING_MISSING, keyring_installed
from vaala.models.keys.source import KeySource
from vaala.models.options import Defaults
from vaala.models.provider import Provider, Route
from vaala.models.secret import Secret
from vaala_protocol.prices import ModelPrices

KEYS = (
    "api_key", "api_key_env", "api_key_secret",
    "api_key_file", "api_key_command", "api_key_keyring",
)  # fmt: skip
"""What names the key of a provider; at most one of them may be there."""
OTHERS = 0o077
"""The bits of a mode that let others than the owner at a file."""


def build_providers(
    file: Checked[ProvidersFile], secrets: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Provider, ...]:
    """Return the providers; for those that ``key_problems`` or ``route_problems`` names nothing is
    promised."""
    directory, withheld = file.document.file.parent, (*KEY_VARIABLES, *key_variables(file))
    sources = {
        name: key_source(section, directory, withheld) for name, section in file.values.root.items()
    }
    return tuple(
        _provider(name, section, secrets, environ, sources[name], route_of(section, directory))
        for name, section in file.values.root.items()
    )


def key_variables(file: Checked[ProvidersFile]) -> tuple[str, ...]:
    """Return the environment variables that hold keys."""
    sections = file.values.root.values()
    return tuple(section.api_key_env for section in sections if section.api_key_env)


def _provider(
    name: str,
    section: ProviderSection,
    secrets: Mapping[str, str],
    environ: Mapping[str, str],
    source: KeySource | None,
    route: Route,
) -> Provider:
    key, key_from = section.api_key, "providers.yaml"
    if section.api_key_env is not None:
        key, key_from = environ.get(section.api_key_env), section.api_key_env
    elif section.api_key_secret is not None:
        key, key_from = secrets.get(section.api_key_secret), "secrets.yaml"
    elif source is not None:
        key_from = str(source)
    return Provider(
        name=name,
        base_url=section.base_url.rstrip("/"),
        api=section.api,
        key=Secret(key) if key else None,
        key_source=source,
        headers={header: Secret(value) for header, value in section.headers.items()},
        query={name: Secret(value) for name, value in section.query.items()},
        route=route,
        models=tuple(section.models),
        windows=dict(section.windows),
        prices={model: _prices(each) for model, each in section.prices.items()},
        deadlines=Deadlines(**section.deadlines.model_dump()),
        requests_max=section.requests_max,
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
    reasons = {name: _no_key(one, environ) for name, one in file.values.root.items()}
    return {name: text for name, (_, text) in reasons.items() if text}


def _no_key(section: ProviderSection, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return why a provider has no key, and by which of its keys; empty: it may have one."""
    variable = section.api_key_env
    if variable is not None and not environ.get(variable):
        return "api_key_env", f"the environment variable {variable} is not set"
    if section.api_key_keyring is not None and not keyring_installed():
        return "api_key_keyring", KEYRING_MISSING
    return "", ""


def key_problems(file: Checked[ProvidersFile], secrets: Mapping[str, str]) -> Iterator[Problem]:
    """Yield where two places are named for a key, or one that is not there."""
    for name, section in file.values.root.items():
        given = [key for key in KEYS if getattr(section, key) is not None]
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
    document = file.document
    for name, section in file.values.root.items():
        key, text = _no_key(section, environ)
        if text:
            yield problem(document, (name, key), text)
        if section.api_key_file is not None:
            path = named_path(document.file.parent, section.api_key_file)
            yield from openness(path)
            if not path.exists():
                yield problem(document, (name, "api_key_file"), f"there is no file {path}")
    if holds_secret(document.file.name, document.values):
        yield from openness(document.file)


def openness(file: Path) -> Iterator[Problem]:
    """Yield that a file with secrets can be read or changed by others, and how to end that."""
    try:
        mode = file.stat().st_mode & 0o777
    except (OSError, ValueError):  # it is not there, or gone again, or its name is none
        return
    if mode & OTHERS:
        text = f"holds secrets and others can use it (mode {mode:04o}): chmod 600 {file}"
        yield Problem(file, None, "", text)
