"""Items as JSON: what is written is read back, and what is not known is kept."""

from __future__ import annotations

from typing import Any

import pytest

from vaala_protocol.base import Malformed
from vaala_protocol.content import TextContent
from vaala_protocol.items import UnknownItem, UserMessage, decode_item, encode_item

SAID = UserMessage(
    id="1", at=1, created_at=5, session_id="s", content=(TextContent(text="hi"),), turn_id="t"
)
FIELDS: dict[str, Any] = encode_item(SAID)


def test_an_item_comes_back_and_its_session_is_not_stored() -> None:
    assert "sessionId" not in FIELDS
    assert decode_item(FIELDS, "s") == SAID


@pytest.mark.parametrize(
    "newer",
    [
        {**FIELDS, "kind": "hologram", "beams": 3},
        {**FIELDS, "content": [{"type": "hologram", "beams": 3}]},
        {**FIELDS, "kind": "notice", "level": "fatal", "text": "a level of tomorrow"},
    ],
    ids=["kind", "content block", "state"],
)
def test_what_a_newer_version_wrote_is_kept_and_placed(newer: dict[str, Any]) -> None:
    item = decode_item(newer, "s")
    assert isinstance(item, UnknownItem)
    assert (item.id, item.at, item.turn_id, item.session_id) == ("1", 1, "t", "s")
    assert encode_item(item) == newer


def test_a_field_of_a_newer_version_does_no_harm() -> None:
    assert decode_item({**FIELDS, "mood": "good"}, "s") == SAID


@pytest.mark.parametrize("fields", [{}, {"kind": 5}, {**FIELDS, "at": "first"}])
def test_what_is_no_item_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Malformed):
        decode_item(fields, "s")
