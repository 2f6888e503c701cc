"""Which model runs when none is named: what the environment offers, in a fixed order. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from vaala.discovery.environment import KEY_ORDER, KEY_VARIABLES
from vaala.models.listing import LocalServer
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala_protocol.errors import BadRequest

__all__ = [
    "KEY_VARIABLES",
    "NOT_SPOKEN",
    "Found",
    "default_model",
    "find_by_key",
    "not_spoken",
    "nothing_found",
    "provider_of_environ",
    "with_key",
]

OPENAI_URL = "https://api.openai.com/v1"
OPENROUTER_URL = "https://openrouter.ai/api/v1"
OPENAI_DEFAULT = "gpt-5.2"
OPENROUTER_DEFAULT = "anthropic/claude-sonnet-4.5"
"""Both in the models.dev catalogue (1.0.398) as able to call tools; the newest that also do so
without an account of a higher tier."""

NOT_SPOKEN: Mapping[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
}
"""Providers whose own API is not spoken yet, with the variables of their keys."""


class Found(Struct, frozen=True):
    """A provider to use. ``model`` None: the first that its server lists."""

    provider: Provider
    model: str | None
    why: str


def provider_of_environ(name: str, environ: Mapping[str, str]) -> Provider | None:
    """Return ``openai`` or ``openrouter`` as the environment has them; None: it does not.

    Raises `BadRequest` for a base URL that is none.
    """
    if name == "openrouter":
        variable = "OPENROUTER_API_KEY"
        key = _value(environ, variable)
        return Provider(name, OPENROUTER_URL, key=Secret(key), key_from=variable) if key else None
    if name != "openai":
        return None
    key = _value(environ, "OPENAI_API_KEY")
    url = _value(environ, "OPENAI_BASE_URL")
    if not key and not url:
        return None
    if url and not re.match(r"https?://[^\s/]", url):
        raise BadRequest(
            f"OPENAI_BASE_URL is {url!r}; expected a URL that begins with http:// or https://"
        )
    return Provider(
        name,
        url or OPENAI_URL,
        key=Secret(key) if key else None,
        url_from="OPENAI_BASE_URL" if url else "",
        key_from="OPENAI_API_KEY",
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
    if provider.base_url.rstrip("/") == OPENAI_URL:
        return OPENAI_DEFAULT
    return OPENROUTER_DEFAULT if provider.base_url.rstrip("/") == OPENROUTER_URL else None


def find_by_key(environ: Mapping[str, str]) -> tuple[Found | None, list[str]]:
    """Return what the first key gives, and a note for each key passed over before it."""
    notes: list[str] = []
    for variable in KEY_ORDER:
        if not _value(environ, variable):
            continue
        passed = next((name for name, keys in NOT_SPOKEN.items() if variable in keys), None)
        if passed is not None:
            notes.append(f"{variable} is set, but {not_spoken(passed)}")
            continue
        name = "openrouter" if variable.startswith("OPENROUTER") else "openai"
        provider = provider_of_environ(name, environ)
        if provider is not None:
            return Found(provider, default_model(provider), f"{variable} is set"), notes
    return None, notes


def not_spoken(provider: str) -> str:
    """Say that a provider's API is not spoken, and the way round it."""
    return (
        f"the API of {provider} itself is not spoken yet; its models can be reached through"
        " OpenRouter (OPENROUTER_API_KEY)"
    )


def nothing_found(servers: Sequence[LocalServer], notes: Sequence[str]) -> str:
    """Say what was looked for, and three ways out."""
    ports = ", ".join(f"{server.port} ({server.title})" for server in servers)
    lines = [
        "there is no model to run. Looked for: a default in the configuration; the variables"
        f" {', '.join(KEY_ORDER)}; a model server on the ports {ports} of this machine.",
        *(f"Note: {note}." for note in notes),
        "Ways out: set a key, such as OPENAI_API_KEY or OPENROUTER_API_KEY; or start a local"
        " server that has a model, such as Ollama; or use --model scripted, which needs neither.",
    ]
    return "\n".join(lines)


def _value(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()
