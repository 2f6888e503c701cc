"""Nothing private leaves the server, wherever an item can be; the rest is passed on as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import inspect
from msgspec.structs import replace

from tests.protocol.generated import JSON_OBJECTS, values
from vaala_protocol.base import encode
from vaala_protocol.events import Event, Frame
from vaala_protocol.items import Item, Private, UnknownItem
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.pages import ItemPage
from vaala_protocol.public import (
    public_event,
    public_frame,
    public_item,
    public_page,
    public_session,
    public_snapshot,
)
from vaala_protocol.state import SessionSnapshot, Snapshot

SECRET = "a-signature-5f0c1e"
"""Longer than any text that is drawn: drawn texts hold constants of the loaded modules, too."""
STRIPPED: dict[Any, Callable[[Any], Any]] = {
    Item: public_item,
    Event: public_event,
    Frame: public_frame,
    SessionSnapshot: public_session,
    Snapshot: public_snapshot,
    ItemPage: public_page,
}
NEWER = st.builds(
    lambda outer, inner: {**outer, "private": SECRET, "parts": [{**inner, "private": [SECRET]}]},
    JSON_OBJECTS,
    JSON_OBJECTS,
)


def _with_secrets(value: Any, newer: dict[str, Any]) -> Any:
    """Return a value with a secret in every place that can hold private data."""
    if isinstance(value, UnknownItem):
        return replace(value, fields=newer)
    if isinstance(value, tuple):
        return tuple(_with_secrets(inner, newer) for inner in value)
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {name: _with_secrets(getattr(value, name), newer) for name in value.__struct_fields__}
    if "private" in fields:
        data = {"signature": SECRET, "deep": [{"id": SECRET}]}
        fields["private"] = Private(provider=SECRET, api="api", model="model", data=data)
    return replace(value, **fields)


def _bare(value: Any) -> Any:
    """Return a value with nothing private in it."""
    if isinstance(value, UnknownItem):
        return replace(value, fields={"kind": "hologram"})
    if isinstance(value, tuple):
        return tuple(map(_bare, value))
    if not isinstance(value, msgspec.Struct):
        return value
    fields = {name: _bare(getattr(value, name)) for name in value.__struct_fields__}
    return replace(value, **{**fields, **({"private": None} if "private" in fields else {})})


@pytest.mark.parametrize(
    ("kind", "public"), STRIPPED.items(), ids=[one.__name__ for one in STRIPPED.values()]
)
@settings(max_examples=25)
@given(data=st.data())
def test_no_secret_survives(kind: Any, public: Callable[[Any], Any], data: st.DataObject) -> None:
    drawn = _bare(data.draw(values(kind)))
    assert public(drawn) is drawn
    secret = _with_secrets(drawn, data.draw(NEWER))
    sent = encode(public(secret))
    assert SECRET.encode() not in sent
    if SECRET.encode() not in encode(secret):
        assert public(secret) is secret


@pytest.mark.parametrize("kind", get_args(Item), ids=lambda kind: kind.__name__)
@given(data=st.data())
@settings(max_examples=5)
def test_all_else_of_an_item_stays(kind: Any, data: st.DataObject) -> None:
    item = _bare(data.draw(values(kind)))
    secret = _with_secrets(item, {"kind": "hologram", "private": 1})
    assert public_item(secret) == item


def _reaches(kind: inspect.Type, goal: type[Any]) -> bool:
    match kind:
        case inspect.StructType(cls=cls, fields=fields):
            return cls is goal or any(_reaches(field.type, goal) for field in fields)
        case inspect.UnionType(types=types):
            return any(_reaches(member, goal) for member in types)
        case inspect.VarTupleType(item_type=inner) | inspect.DictType(value_type=inner):
            return _reaches(inner, goal)
        case _:
            return False


def test_what_can_hold_private_data_is_known() -> None:
    """A new way out for an item needs a function here, and a caller in the server."""
    kinds: dict[str, Any] = {}
    for method in (*REQUESTS, *CLIENT_REQUESTS):
        kinds[f"{method.method} params"] = method
        kinds[f"{method.method} result"] = method.result
    kinds |= {notification.method: notification for notification in NOTIFICATIONS}
    ways = {name for name, kind in kinds.items() if _reaches(inspect.type_info(kind), Private)}
    assert ways == {
        "conversation/event",  # public_frame
        "conversation/resync",  # public_snapshot
        "conversation/subscribe result",  # public_snapshot
        "session/items result",  # public_page
    }
