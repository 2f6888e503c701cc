"""Batches: one array with the answers of their requests, in order, when the last is known."""

from __future__ import annotations

import json
from typing import Any

from tests.protocol.sums import Difference, errors, exchange, kinds, sums_peer
from vaala_protocol import limits
from vaala_protocol.base import decode
from vaala_protocol.errors import Busy
from vaala_protocol.rpc import Reply


def _call(id: object, method: str = "get_data", **members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, **members}


def test_the_array_leaves_with_the_last_answer_in_the_order_of_the_requests() -> None:
    peer = sums_peer()
    batch = [_call(1), _call("two", "nowhere"), _call(None), _call(4)]
    assert kinds(peer.receive(json.dumps(batch))) == ["Call", "Call", "Call"]
    assert peer.answer(4, Difference(value=4)) is None
    assert peer.refuse(1, Busy("later")) is None
    last = peer.answer(None, Difference(value=3))
    assert last is not None
    answers = decode(last)
    assert [answer["id"] for answer in answers] == [1, "two", None, 4]
    assert errors([answers[:2]]) == [(1, -32003), ("two", -32601)]
    assert [answer["result"]["value"] for answer in answers[2:]] == [3, 4]


def test_two_batches_and_a_single_request_do_not_mix() -> None:
    peer = sums_peer()
    peer.receive(json.dumps([_call(1), _call(2)]))
    peer.receive(json.dumps([_call(3)]))
    peer.receive(json.dumps(_call(4)))
    assert peer.answer(1, Difference(value=1)) is None
    third, fourth = peer.answer(3, Difference(value=3)), peer.answer(4, Difference(value=4))
    assert third is not None
    assert fourth is not None
    assert [one["id"] for one in decode(third)] == [3]
    assert decode(fourth)["id"] == 4
    second = peer.answer(2, Difference(value=2))
    assert second is not None
    assert [one["id"] for one in decode(second)] == [1, 2]


def test_an_id_is_used_once_in_a_batch() -> None:
    (answer,) = exchange(sums_peer(), json.dumps([_call(1), _call(1)]))
    assert [one["id"] for one in answer] == [1, 1]
    assert answer[0]["result"] == {}
    assert answer[1]["error"]["code"] == -32600


def test_members_that_are_refused_all_are_answered_at_once() -> None:
    (reply,) = sums_peer().receive(json.dumps([_call(1, "nowhere"), [], 7]))
    assert isinstance(reply, Reply)
    assert errors([decode(reply.data)]) == [(1, -32601), (None, -32600), (None, -32600)]


def test_requests_notifications_and_answers_in_one_batch() -> None:
    peer = sums_peer()
    batch: list[dict[str, Any]] = [
        {"jsonrpc": "2.0", "method": "update", "params": {"values": [1]}},
        {"jsonrpc": "2.0", "id": 99, "result": {}},
        {"jsonrpc": "2.0", "method": "update", "params": {"values": "x"}},
        _call(5),
    ]
    assert kinds(peer.receive(json.dumps(batch))) == ["Note", "Ignored", "Ignored", "Call"]
    answer = peer.answer(5, Difference(value=5))
    assert answer is not None
    assert [one["id"] for one in decode(answer)] == [5]


def test_text_that_breaks_in_one_member_is_a_parse_error_of_the_whole() -> None:
    peer = sums_peer()
    whole = json.dumps([_call(1), _call("broken")])
    (answer,) = exchange(peer, whole.replace("broken", "\\ud800"))
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert peer.serving == 0


def test_a_batch_has_a_largest_number_of_messages() -> None:
    most = json.dumps([_call(id) for id in range(limits.BATCH_MESSAGES_MAX)])
    assert len(exchange(sums_peer(), most)[0]) == limits.BATCH_MESSAGES_MAX
    more = json.dumps([_call(id) for id in range(limits.BATCH_MESSAGES_MAX + 1)])
    (answer,) = exchange(sums_peer(), more)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


def test_a_batch_has_a_largest_size() -> None:
    message = json.dumps([_call(1, pad="x" * limits.BATCH_BYTES_MAX)])
    (answer,) = exchange(sums_peer(), message)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert str(limits.BATCH_BYTES_MAX) in answer["error"]["message"]


def test_space_before_a_batch_changes_nothing() -> None:
    (answer,) = exchange(sums_peer(), " \r\n\t" + json.dumps([_call(1)]))
    assert [one["id"] for one in answer] == [1]


def test_answers_that_no_message_holds_are_refused_in_their_place() -> None:
    peer = sums_peer(sent_bytes_max=400)
    peer.receive(json.dumps([_call(number) for number in range(5)]))
    for number in range(4):
        assert peer.answer(number, Difference(value=number)) is None
    last = peer.answer(4, Difference(value=4))
    assert last is not None
    answers = decode(last)
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3, 4]
    refused = [answer for answer in answers if "error" in answer]
    assert answers[-len(refused) :] == refused
    assert 0 < len(refused) < 5
    assert {answer["error"]["data"]["code"] for answer in refused} == {"overloaded"}
