"""What a server refused of the things that a request asks for on our own account."""

from __future__ import annotations

import re

from msgspec.structs import replace

from vaala.models.responses.encode import ENCRYPTED, Asked

_REPLAY = re.compile(
    rb"invalid_encrypted_content|could not be (?:verified|decrypted)|encrypted content"
    rb"|required following item|without its required|items are not persisted"
    rb"|input\[\d+\]\.(?:id|summary|content|encrypted_content|status)\b",
    re.IGNORECASE,
)
"""About reasoning that goes back: OpenAI's "The encrypted content gAAA... could not be verified"
(github.com/openai/codex/issues/8145: another key, region or deployment), "... was provided without
its required following item" (recorded), "Item with id 'rs_...' not found. Items are not persisted
when `store` is set to false" (github.com/vercel/ai/issues/7543), "Invalid 'input[2].id'"."""

_SUMMARY = re.compile(
    rb"reasoning\.summary|reasoning summar|parameter:? '?reasoning'?(?![.\w])", re.IGNORECASE
)
"""OpenAI: "Your organization must be verified to generate reasoning summaries", and "Unsupported
parameter: 'reasoning.summary' is not supported with this model"."""

_ENCRYPTED = re.compile(
    rb"""['"]include(?:\[\d+\])?['"]|parameter:? '?include\b|encrypted[ _]content""", re.IGNORECASE
)
"""OpenAI: "Encrypted content is not supported with this model" (param ``include``)."""


_OUTPUT = re.compile(rb"text\.format|json_schema|response_format|schema", re.IGNORECASE)
"""OpenAI: "Invalid parameter: 'text.format' of type 'json_schema' is not supported with this
model", "Invalid schema for response_format 'answer'"."""


def asked_less(asked: Asked, body: bytes, status: int, said: bytes) -> Asked | None:
    """Return what can be asked after a refusal, None when another request would not help.

    ``body`` is the request and ``said`` the body of the answer of ``status``. Each call asks for
    less, so that it ends.
    """
    if status not in (400, 404, 422):
        return None
    if asked.replay and b'"type":"reasoning"' in body and _REPLAY.search(said):
        return replace(asked, replay=False)
    if asked.summary and _SUMMARY.search(said):
        return replace(asked, summary=False)
    if asked.encrypted and ENCRYPTED.encode() in body and _ENCRYPTED.search(said):
        return replace(asked, encrypted=False)
    if asked.output and b'"format":{"type":"json_schema"' in body and _OUTPUT.search(said):
        return replace(asked, output=False)
    return None
