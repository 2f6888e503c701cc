"""The headers that name and prove who asks, for each wire format."""

from __future__ import annotations

from vaala.models.provider import Provider

ANTHROPIC_VERSION = "2023-06-01"
"""The only version of the Messages API that is not historical
(platform.claude.com/docs/en/api/versioning)."""


def auth_headers(provider: Provider) -> dict[str, str]:
    """Return the headers of a provider, those of the configuration included, by lower-case name.

    A configured header replaces one of the same name. They hold the key: never show them.
    """
    headers = {"anthropic-version": ANTHROPIC_VERSION} if provider.api == "anthropic" else {}
    if provider.key is not None:
        name, prefix = _KEY_HEADERS.get(provider.api, ("authorization", "Bearer "))
        headers[name] = f"{prefix}{provider.key.reveal()}"
    return headers | {name.lower(): value.reveal() for name, value in provider.headers.items()}


_KEY_HEADERS = {"anthropic": ("x-api-key", ""), "gemini": ("x-goog-api-key", "")}
