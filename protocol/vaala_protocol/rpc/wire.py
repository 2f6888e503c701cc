"""The frames of JSON-RPC 2.0: reading the outer shape of a message, and writing messages."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from vaala_protocol.base import to_json
from vaala_protocol.methods.base import Notification
from vaala_protocol.rpc.incoming import Id
from vaala_protocol.rpc.refusals import ErrorBody


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """A message with its insides unread."""

    jsonrpc: str = ""
    id: Id | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class OddEnvelope(msgspec.Struct, frozen=True, kw_only=True):
    """What can be told of an object that is no message."""

    id: Raw | UnsetType = UNSET
    method: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET


class _Request(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: int
    method: str
    params: Any


class _Notification(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    method: str
    params: Any


class _Result(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    result: Any


class _Error(msgspec.Struct, frozen=True, tag_field="jsonrpc", tag="2.0"):
    id: Id
    error: ErrorBody


def write_request(id: int, method: str, params: object) -> bytes:
    return _encode(_Request(id, method, params))


def write_notification(notification: Notification) -> bytes:
    """Return a notification as a message. It belongs to no connection: one serves all."""
    return _encode(_Notification(notification.method, notification))


def write_result(id: Id, result: object) -> bytes:
    return _encode(_Result(id, result))


def write_error(id: Id, error: ErrorBody) -> bytes:
    return _encode(_Error(id, error))


def _encode(message: object) -> bytes:
    """Lone surrogates (a file name that is no UTF-8 has them) are sent as question marks."""
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        return msgspec.json.encode(_clean(to_json(message)))


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {_clean(key): _clean(item) for key, item in value.items()}
    return value
