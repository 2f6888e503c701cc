"""Why a WebSocket was closed; RFC 6455, section 7.4.1."""

from __future__ import annotations

from typing import Final

NORMAL: Final = 1000
GOING_AWAY: Final = 1001
"""The server was stopped on purpose: clients do not start it again against that."""
PROTOCOL_ERROR: Final = 1002
NOT_UTF8: Final = 1007
ABUSE: Final = 1008
"""What came never became messages."""
TOO_BIG: Final = 1009
"""A message was larger than `vaala_protocol.limits` allows."""
FAULT: Final = 1011
"""A bug of the server; the reason names a trace that its log has, too."""
