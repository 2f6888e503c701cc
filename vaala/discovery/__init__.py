"""How clients find the server of a data directory and make sure that it is the right one.

`place_of` tells which files belong to a data directory; `record` is the discovery file;
`handshake` the proofs while a WebSocket is opened; `ready` what a server tells its starter.
"""

from __future__ import annotations

from vaala.discovery.handshake import (
    AUTHORIZATION_HEADER,
    PROOF_HEADER,
    WEBSOCKET_PATH,
    bearer,
    challenge_of,
    client_proof,
    is_bearer,
    is_client_proof,
    is_proof,
    new_challenge,
    new_token,
    proof,
)
from vaala.discovery.place import Place, is_owned, owner_pid, place_of
from vaala.discovery.ready import Failed, Ready, Report, parse_report, write_report
from vaala.discovery.record import (
    NoRecord,
    ServerRecord,
    read_record,
    remove_record,
    write_record,
)

__all__ = [
    "AUTHORIZATION_HEADER",
    "PROOF_HEADER",
    "WEBSOCKET_PATH",
    "Failed",
    "NoRecord",
    "Place",
    "Ready",
    "Report",
    "ServerRecord",
    "bearer",
    "challenge_of",
    "client_proof",
    "is_bearer",
    "is_client_proof",
    "is_owned",
    "is_proof",
    "new_challenge",
    "new_token",
    "owner_pid",
    "parse_report",
    "place_of",
    "proof",
    "read_record",
    "remove_record",
    "write_record",
    "write_report",
]
