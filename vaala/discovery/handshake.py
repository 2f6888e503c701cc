"""How a client and a server make sure of each other while the WebSocket is opened.

The client sends the token in ``Authorization: Bearer ...`` and a random challenge in
`CHALLENGE_HEADER`; the server answers the upgrade with the proof in `PROOF_HEADER`, which only
one who knows the token can compute. A client sends nothing else before it has seen the proof: a
stranger on the port of a server that is gone learns a token that opens nothing any more.
"""

from __future__ import annotations

import hmac
import secrets

from vaala.discovery import limits

WEBSOCKET_PATH = "/api/v1/vaala"
AUTHORIZATION_HEADER = "authorization"
CHALLENGE_HEADER = "vaala-challenge"
PROOF_HEADER = "vaala-proof"

_CONTEXT = b"vaala server proof\0"
"""Keeps a proof from being of use for anything else that the token might sign."""


def new_token() -> str:
    """Return the token for one run of a server."""
    return secrets.token_urlsafe(limits.TOKEN_BYTES)


def new_challenge() -> str:
    """Return a challenge; use it once."""
    return secrets.token_urlsafe(limits.CHALLENGE_BYTES)


def bearer(token: str) -> str:
    """Return the value of the authorization header."""
    return f"Bearer {token}"


def is_bearer(value: str, token: str) -> bool:
    """Tell whether an authorization header holds the token; takes the same time for every value."""
    return hmac.compare_digest(value.encode(), bearer(token).encode())


def proof(token: str, challenge: str) -> str:
    """Return what shows that one knows the token, in hexadecimal.

    Raises ``ValueError`` for a challenge that is longer than any client sends.
    """
    if len(challenge) > limits.CHALLENGE_CHARACTERS_MAX:
        raise ValueError(f"a challenge of {len(challenge)} characters")
    return hmac.new(token.encode(), _CONTEXT + challenge.encode(), "sha256").hexdigest()


def is_proof(value: str, token: str, challenge: str) -> bool:
    """Tell whether ``value`` is the proof; takes the same time for every value."""
    return hmac.compare_digest(value.encode(), proof(token, challenge).encode())
