"""What an upgrade to a WebSocket must look like before trio-websocket gets to see it.

trio-websocket would wait for ever for the application after it has refused one by itself.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

from vaala.discovery import WEBSOCKET_PATH
from vaala.server.transport.head import Head
from vaala.server.transport.refusal import Refusal

UPGRADE_HEADERS: Final = (("Upgrade", "websocket"),)

_READ_AS_ASCII: Final = ("Connection", "Sec-WebSocket-Extensions", "Sec-WebSocket-Protocol")
"""Headers whose other bytes make trio-websocket's reader raise an error of text."""


def check_upgrade(head: Head) -> None:
    """Raise `Refusal` for an upgrade that cannot be done (RFC 6455, section 4.2.1)."""
    if head.path != WEBSOCKET_PATH:
        raise Refusal(404, f"WebSockets are at {WEBSOCKET_PATH} and nowhere else")
    if head.method != "GET" or head.version != "1.1":
        raise Refusal(400, "an upgrade to a WebSocket is a GET of HTTP/1.1")
    if head.header("sec-websocket-version") != "13":
        raise Refusal(
            426, "this server speaks version 13 of WebSockets: send Sec-WebSocket-Version: 13",
            (*UPGRADE_HEADERS, ("Sec-WebSocket-Version", "13")),
        )  # fmt: skip
    if not _is_key(head.header("sec-websocket-key")):
        raise Refusal(400, "Sec-WebSocket-Key must be 16 random bytes in base64")
    if head.header("content-length") not in ("", "0") or head.header("transfer-encoding"):
        raise Refusal(400, "an upgrade has no body")
    for name in _READ_AS_ASCII:
        if not head.header(name.lower()).isascii():
            raise Refusal(400, f"{name} must be ASCII")


def _is_key(text: str) -> bool:
    try:
        return len(base64.b64decode(text, validate=True)) == 16
    except (binascii.Error, ValueError):
        return False
