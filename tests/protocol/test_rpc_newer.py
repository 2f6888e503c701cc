"""A client hears a newer server of its major version: what it does not know is kept, not lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from vaala_protocol.base import Malformed
from vaala_protocol.events import Frame, ItemChanged, UnknownEvent
from vaala_protocol.items import Notice, UnknownItem
from vaala_protocol.methods.conversation import EventNotification
from vaala_protocol.methods.runtime import RuntimeEventNotification
from vaala_protocol.methods.session import SessionItemsParams
from vaala_protocol.rpc import Answer, Ignored, Note, client_peer

HEAD = {"id": "i", "at": 5, "createdAt": 9, "sessionId": "s", "turnId": "t", "rev": 2}
HOLOGRAM = {**HEAD, "kind": "hologram", "beams": [{"kind": "laser"}]}
NOTICE = {**HEAD, "kind": "notice", "level": "info", "text": "hello"}


def _event(method: str, event: Any) -> Any:
    frame = {"epoch": "e", "first": 3, "seq": 4, "event": event}
    params = {"conversationId": "c", "frame": frame}
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    (received,) = client_peer().receive(json.dumps(message))
    return received


def _is_hologram(item: object) -> bool:
    return (
        isinstance(item, UnknownItem)
        and item.unknown_kind == "hologram"
        and (item.id, item.at, item.session_id, item.rev) == ("i", 5, "s", 2)
        and item.fields == HOLOGRAM
    )


def test_an_item_of_a_kind_that_is_not_known() -> None:  # H9-4
    note = _event("conversation/event", {"type": "item/changed", "item": HOLOGRAM, "live": True})
    assert isinstance(note, Note)
    assert isinstance(note.params, EventNotification)
    event = note.params.frame.event
    assert isinstance(event, ItemChanged)
    assert event.live
    assert _is_hologram(event.item)


def test_an_event_of_a_type_that_is_not_known_counts() -> None:  # H9-4
    event = {"type": "goal/changed", "goal": {"text": "win"}}
    note = _event("conversation/event", event)
    assert isinstance(note.params, EventNotification)
    unknown = UnknownEvent(unknown_type="goal/changed", fields=event)
    assert note.params.frame == Frame(epoch="e", first=3, seq=4, event=unknown)
    note = _event("runtime/event", event)
    assert isinstance(note.params, RuntimeEventNotification)
    assert note.params.frame.event == unknown


@pytest.mark.parametrize(
    "event",
    [
        {"type": "item/changed", "item": {"kind": "hologram"}},
        {"type": "item/changed", "item": {**HOLOGRAM, "at": "first"}},
        {"type": "turn/changed", "sessionId": "s", "turn": {"state": "paused"}},
        {"type": 5},
        {},
        "gone",
    ],
    ids=repr,
)
def test_what_is_wrong_and_not_new_is_reported(event: Any) -> None:
    assert isinstance(_event("conversation/event", event), Ignored)


def _page(items: list[Any]) -> Answer:
    client = client_peer()
    id, _ = client.ask(SessionItemsParams(conversation_id="c"))
    result = {"items": items, "earlier": False, "later": False}
    (answer,) = client.receive(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))
    assert isinstance(answer, Answer)
    return answer


def test_a_page_keeps_what_it_knows_beside_what_it_does_not_know() -> None:
    newer = {**NOTICE, "level": "fatal"}
    first, second, third = _page([HOLOGRAM, NOTICE, newer]).result.items
    assert _is_hologram(first)
    assert isinstance(second, Notice)
    assert isinstance(third, UnknownItem)
    assert (third.unknown_kind, third.fields) == ("notice", newer)


def test_an_item_that_the_server_did_not_know_is_not_wrapped_again() -> None:
    unknown = {**HEAD, "kind": "unknown", "unknownKind": "hologram", "fields": HOLOGRAM}
    first, second = _page([unknown, {**HOLOGRAM, "id": "j"}]).result.items
    assert _is_hologram(first)
    assert second.id == "j"


def test_a_page_that_is_wrong_in_itself_is_malformed() -> None:
    assert isinstance(_page([HOLOGRAM, {**NOTICE, "at": "last"}]).error, Malformed)


def test_what_is_new_and_too_deep_for_a_stack_raises_nothing() -> None:
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    note = _event("conversation/event", {"type": "goal/changed", "goal": deep})
    assert isinstance(note, (Note, Ignored))
