"""JSON-RPC 2.0 without I/O: `Peer` is one side of a connection."""

from vaala_protocol.rpc.incoming import Answer, Call, Id, Ignored, Incoming, Note, Reply
from vaala_protocol.rpc.peer import Peer, client_peer, server_peer
from vaala_protocol.rpc.refusals import ErrorBody, ErrorData, error_body, refusal
from vaala_protocol.rpc.wire import write_notification

__all__ = [
    "Answer",
    "Call",
    "ErrorBody",
    "ErrorData",
    "Id",
    "Ignored",
    "Incoming",
    "Note",
    "Peer",
    "Reply",
    "client_peer",
    "error_body",
    "refusal",
    "server_peer",
    "write_notification",
]
