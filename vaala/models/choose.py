"""Which model runs when none is named: what the environment offers, in a fixed order. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from vaala.discovery.environment import KEY_ORDER, KEY_VARIABLES
from vaala.models.listing import LocalServer
from vaala.models.provider import Api, Provider
from vaala.models.secret import Secret
from vaala_protocol.errors import BadRequest

__all__ = [
    "KEY_VARIABLES",
    "PROVIDERS",
    "Found",
    "default_model",
    "find_by_key",
    "key_needed",
    "nothing_found",
    "provider_of_environ",
    "with_key",
]


class Known(Struct, frozen=True):
    """A provider that the environment can have a key of."""

    url: str
    api: Api
    keys: tuple[str, ...]
    """Variables of its key; the first that is set counts."""
    model: str
    """The default: able to call tools, no preview, not for an account of a higher tier alone
    (models.dev catalogue 1.0.398; platform.claude.com/docs/en/about-claude/models)."""
    url_variable: str = ""


PROVIDERS: Mapping[str, Known] = {
    "anthropic": Known(
        "https://api.anthropic.com/v1", "anthropic", ("ANTHROPIC_API_KEY",), "claude-sonnet-5-5"
    ),
    "openai": Known(
        "https://api.openai.com/v1", "chat", ("OPENAI_API_KEY",), "gpt-5.2", "OPENAI_BASE_URL"
    ),
    "gemini": Known(
        "https://generativelanguage.googleapis.com/v1beta",
        "gemini",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        "gemini-3.5-flash",
    ),
    "openrouter": Known(
        "https://openrouter.ai/api/v1",
        "chat",
        ("OPENROUTER_API_KEY",),
        "anthropic/claude-sonnet-4.5",
    ),
}
"""By the name that a user writes."""


class Found(Struct, frozen=True):
    """A provider to use. ``model`` None: the first that its server lists."""

    provider: Provider
    model: str | None
    why: str


def provider_of_environ(name: str, environ: Mapping[str, str]) -> Provider | None:
    """Return one of `PROVIDERS` as the environment has it; None: it does not.

    Raises `BadRequest` for a base URL that is none.
    """
    known = PROVIDERS.get(name)
    if known is None:
        return None
    variable = next((key for key in known.keys if _value(environ, key)), None)
    url = _value(environ, known.url_variable)
    if variable is None and not url:
        return None
    if url and not re.match(r"https?://[^\s/]", url):
        raise BadRequest(
            f"{known.url_variable} is {url!r}; expected a URL that begins with http:// or https://"
        )
    return Provider(
        name,
        url or known.url,
        api=known.api,
        key=Secret(_value(environ, variable)) if variable else None,
        url_from=known.url_variable if url else "",
        key_from=variable or known.keys[0],
    )


def with_key(provider: Provider, keys: Mapping[str, str]) -> Provider:
    """Return a provider with the key that a client has under the name that it is looked for.

    A key that stands in the configuration itself stays: its name is that of no variable.
    """
    key = _value(keys, provider.key_from) if provider.key_from else ""
    return replace(provider, key=Secret(key)) if key else provider


def default_model(provider: Provider) -> str | None:
    """Return the model of a provider when none is named; None: its server has to be asked."""
    if provider.models:
        return provider.models[0]
    url = provider.base_url.rstrip("/")
    return next((known.model for known in PROVIDERS.values() if known.url == url), None)


def find_by_key(environ: Mapping[str, str]) -> Found | None:
    """Return what the first key gives."""
    for variable in KEY_ORDER:
        if not _value(environ, variable):
            continue
        for name, known in PROVIDERS.items():
            if variable not in (*known.keys, known.url_variable):
                continue
            provider = provider_of_environ(name, environ)
            if provider is not None:
                return Found(provider, default_model(provider), f"{variable} is set")
    return None


def key_needed(name: str) -> str:
    """Say that one of `PROVIDERS` has no key, and the way out."""
    return f"the provider {name} needs a key: set {PROVIDERS[name].keys[0]}"


def nothing_found(servers: Sequence[LocalServer]) -> str:
    """Say what was looked for, and three ways out."""
    ports = ", ".join(f"{server.port} ({server.title})" for server in servers)
    lines = [
        "there is no model to run. Looked for: a default in the configuration; the variables"
        f" {', '.join(KEY_ORDER)}; a model server on the ports {ports} of this machine.",
        "Ways out: set a key, such as ANTHROPIC_API_KEY or OPENAI_API_KEY; or start a local"
        " server that has a model, such as Ollama; or use --model scripted, which needs neither.",
    ]
    return "\n".join(lines)


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()
