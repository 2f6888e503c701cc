"""What a newer server of the same major version may send: kinds of items and types of events.

A client that does not know them keeps them whole: as `UnknownItem`, which is shown by its kind,
and as `UnknownEvent`, whose numbers count. All else that it does not know is a field more, and
needs no care. This is the slow way, taken when the usual one has failed.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar, get_args

from msgspec import Raw

from vaala_protocol.base import Malformed, decode, from_json, to_json
from vaala_protocol.events import Event
from vaala_protocol.items import decode_item
from vaala_protocol.methods.runtime import RuntimeEvent

T = TypeVar("T")

_UNKNOWN = "unknown"
_ITEM_FIELDS = frozenset({"kind", "id", "at", "createdAt"})
_EVENT_TYPES = frozenset(
    kind.__struct_config__.tag for kind in (*get_args(Event), *get_args(RuntimeEvent))
)


def read_newer(raw: Raw, kind: type[T]) -> T:
    """Read a result or the parameters of a notification as ``kind``; raises `Malformed`."""
    try:
        return from_json(_known(decode(bytes(raw))), kind)
    except RecursionError as error:
        raise Malformed(str(error)) from error


def _known(value: Any) -> Any:
    """Return JSON with the items and events in it that are not known marked as such."""
    match value:
        case list():
            return [_known(inner) for inner in value]
        case dict() if value.keys() >= _ITEM_FIELDS:
            return _item(value)
        case dict():
            fields = {name: _known(inner) for name, inner in value.items()}
            if isinstance(fields.get("event"), dict):
                fields["event"] = _event(fields["event"])
            return fields
        case _:
            return value


def _item(fields: dict[str, Any]) -> dict[str, Any]:
    if fields["kind"] == _UNKNOWN:
        return fields  # the server did not know it either
    with suppress(Malformed):
        item: dict[str, Any] = to_json(decode_item(fields, str(fields.get("sessionId", ""))))
        return item
    return fields


def _event(fields: dict[str, Any]) -> dict[str, Any]:
    kind = fields.get("type")
    if not isinstance(kind, str) or kind in _EVENT_TYPES:
        return fields
    return {"type": _UNKNOWN, "unknownType": kind, "fields": fields}
