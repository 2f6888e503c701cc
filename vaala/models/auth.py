"""What names and proves who asks: headers for each wire format, and parameters of the URL."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

from vaala.models.provider import Provider
from vaala.models.secret import Secret

ANTHROPIC_VERSION = "2023-06-01"
"""The only version of the Messages API that is not historical
(platform.claude.com/docs/en/api/versioning)."""


def auth_headers(provider: Provider) -> dict[str, str]:
    """Return the headers of a provider, those of the configuration included, by lower-case name.

    A configured header replaces one of the same name. They hold the key, unless it is one that is
    asked for later: never show them.
    """
    headers = {"anthropic-version": ANTHROPIC_VERSION} if provider.api == "anthropic" else {}
    if provider.key is not None:
        headers |= key_header(provider, provider.key)
    return headers | {name.lower(): value.reveal() for name, value in provider.headers.items()}


def key_header(provider: Provider, key: Secret) -> dict[str, str]:
    """Return the header that the provider's wire format has the key in."""
    name, prefix = _KEY_HEADERS.get(provider.api, ("authorization", "Bearer "))
    return {name: f"{prefix}{key.reveal()}"}


def with_query(provider: Provider, url: str) -> str:
    """Return ``url`` with the parameters of the configuration behind its own. Never show it."""
    if not provider.query:
        return url
    added = urlencode({name: value.reveal() for name, value in provider.query.items()})
    return f"{url}{'&' if urlsplit(url).query else '?'}{added}"


_KEY_HEADERS = {"anthropic": ("x-api-key", ""), "gemini": ("x-goog-api-key", "")}
