"""The examples of the JSON-RPC 2.0 specification, section 7.

Our methods take named parameters alone, so what the examples call by position is refused (-32602)
under its id; everything else is answered as printed there. The numbers of the results stand in an
object, as all our results do.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.protocol.sums import errors, exchange, sums_peer
from vaala_protocol.methods.base import Request
from vaala_protocol.rpc import Note

BY_NAME = [
    (
        '{"jsonrpc": "2.0", "method": "subtract",'
        ' "params": {"subtrahend": 23, "minuend": 42}, "id": 3}',
        {"jsonrpc": "2.0", "result": {"value": 19}, "id": 3},
    ),
    (
        '{"jsonrpc": "2.0", "method": "subtract",'
        ' "params": {"minuend": 42, "subtrahend": 23}, "id": 4}',
        {"jsonrpc": "2.0", "result": {"value": 19}, "id": 4},
    ),
]

ONE_ERROR = [
    ('{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}', 1, -32602),
    ('{"jsonrpc": "2.0", "method": "foobar", "id": "1"}', "1", -32601),
    ('{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', None, -32700),
    ('{"jsonrpc": "2.0", "method": 1, "params": "bar"}', None, -32600),
    (
        '[ {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},'
        ' {"jsonrpc": "2.0", "method"]',
        None,
        -32700,
    ),
    ("[]", None, -32600),
]


@pytest.mark.parametrize(("message", "answer"), BY_NAME)
def test_a_call_by_name(message: str, answer: dict[str, Any]) -> None:
    assert exchange(sums_peer(), message) == [answer]


@pytest.mark.parametrize(("message", "id", "code"), ONE_ERROR)
def test_one_error_that_is_no_array(message: str, id: object, code: int) -> None:
    (answer,) = exchange(sums_peer(), message)
    assert isinstance(answer, dict)
    assert (answer["jsonrpc"], answer["id"], answer["error"]["code"]) == ("2.0", id, code)
    assert answer["error"]["message"]


def test_a_notification_has_no_answer() -> None:
    peer = sums_peer()
    assert exchange(peer, '{"jsonrpc": "2.0", "method": "foobar"}') == []
    assert exchange(peer, '{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}') == []
    assert exchange(peer, '{"jsonrpc": "2.0", "method": "update", "params": {"values": [1]}}') == []


def test_a_request_without_an_id_is_heard_and_not_answered() -> None:
    (note,) = sums_peer().receive('{"jsonrpc": "2.0", "method": "get_data"}')
    assert isinstance(note, Note)
    assert isinstance(note.params, Request)


@pytest.mark.parametrize(("message", "count"), [("[1]", 1), ("[1,2,3]", 3)])
def test_an_invalid_batch(message: str, count: int) -> None:
    (answer,) = exchange(sums_peer(), message)
    assert isinstance(answer, list)
    assert errors([answer]) == [(None, -32600)] * count


def test_a_batch() -> None:
    message = """[
        {"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]},
        {"jsonrpc": "2.0", "method": "subtract", "params": [42,23], "id": "2"},
        {"foo": "boo"},
        {"jsonrpc": "2.0", "method": "foo.get", "params": {"name": "myself"}, "id": "5"},
        {"jsonrpc": "2.0", "method": "get_data", "id": "9"}
    ]"""
    (answer,) = exchange(sums_peer(), message)
    assert errors([answer[:4]]) == [("1", -32601), ("2", -32602), (None, -32600), ("5", -32601)]
    assert answer[4:] == [{"jsonrpc": "2.0", "result": {}, "id": "9"}]


def test_a_batch_of_notifications_has_no_answer() -> None:
    message = """[
        {"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},
        {"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}
    ]"""
    assert exchange(sums_peer(), message) == []
