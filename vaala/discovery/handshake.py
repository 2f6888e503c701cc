"""How a client and a server make sure of each other while the WebSocket is opened.

The client sends a random challenge, and the proof over it that only one who knows the token can
compute, in ``Authorization: Vaala CHALLENGE.PROOF``. The server answers the upgrade with its own
proof over the same challenge, of another context, in `PROOF_HEADER`. The client sends nothing else
before it has seen that.

The token itself is never sent: a stranger on the port of a server that is gone could compute the
server's proof from it. What the stranger learns here opens nothing but that server, whose token
has ended with it. ``Authorization: Bearer TOKEN`` is for programs that do not care who answers.
"""

from __future__ import annotations

import hmac
import secrets

from vaala.discovery import limits

WEBSOCKET_PATH = "/api/v1/vaala"
AUTHORIZATION_HEADER = "authorization"
PROOF_HEADER = "vaala-proof"

_SCHEME = "Vaala "
_CLIENT = b"vaala client proof\0"
_SERVER = b"vaala server proof\0"
"""Contexts: what one side sends is of no use as the proof of the other."""


def new_token() -> str:
    """Return the token for one run of a server."""
    return secrets.token_urlsafe(limits.TOKEN_BYTES)


def new_challenge() -> str:
    """Return a challenge; use it once."""
    return secrets.token_urlsafe(limits.CHALLENGE_BYTES)


def bearer(token: str) -> str:
    """Return the value of an authorization header that tells the token."""
    return f"Bearer {token}"


def is_bearer(value: str, token: str) -> bool:
    """Tell whether an authorization header holds the token; takes the same time for every value."""
    return hmac.compare_digest(value.encode(), bearer(token).encode())


def client_proof(token: str, challenge: str) -> str:
    """Return the value of an authorization header that shows that one knows the token.

    Raises ``ValueError`` as `proof` does.
    """
    return f"{_SCHEME}{challenge}.{_proof(token, _CLIENT, challenge)}"


def challenge_of(value: str) -> str | None:
    """Return the challenge in an authorization header; None: it is of another scheme."""
    if not value.startswith(_SCHEME):
        return None
    return value.removeprefix(_SCHEME).rpartition(".")[0]


def is_client_proof(value: str, token: str) -> bool:
    """Tell whether an authorization header shows that the client knows the token.

    Takes the same time for every proof. Raises ``ValueError`` as `proof` does.
    """
    challenge = challenge_of(value)
    if challenge is None:
        return False
    return hmac.compare_digest(value.encode(), client_proof(token, challenge).encode())


def proof(token: str, challenge: str) -> str:
    """Return what shows a client that the server knows the token, in hexadecimal.

    Raises ``ValueError`` for a challenge that is empty or longer than any client sends.
    """
    return _proof(token, _SERVER, challenge)


def is_proof(value: str, token: str, challenge: str) -> bool:
    """Tell whether ``value`` is the server's proof; takes the same time for every value."""
    return hmac.compare_digest(value.encode(), proof(token, challenge).encode())


def _proof(token: str, context: bytes, challenge: str) -> str:
    if not 0 < len(challenge) <= limits.CHALLENGE_CHARACTERS_MAX:
        raise ValueError(
            f"a challenge has 1 to {limits.CHALLENGE_CHARACTERS_MAX} characters, "
            f"and not {len(challenge)}"
        )
    return hmac.new(token.encode(), context + challenge.encode(), "sha256").hexdigest()
