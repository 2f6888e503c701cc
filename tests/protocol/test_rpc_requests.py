"""What a peer takes from the other side, and what it refuses, with the field that is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.protocol.sums import exchange, kinds, sums_peer
from vaala_protocol import limits
from vaala_protocol.base import decode
from vaala_protocol.errors import Busy
from vaala_protocol.methods.base import Done
from vaala_protocol.rpc import Call, Ignored, Reply, server_peer

DEEP = 100_000
SUBTRACT = {"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 3, "subtrahend": 1}}
SEND: dict[str, Any] = {
    "conversationId": "c",
    "clientId": "x",
    "content": [{"type": "text", "text": "hi"}],
}


def _message(**members: Any) -> str:
    return json.dumps({**SUBTRACT, **members})


@pytest.mark.parametrize(
    "id", [0, 1, -7, 2**63, 2**64 - 1, -(2**63), 1.5, "", "1", "é\u2028", None], ids=repr
)
def test_an_id_comes_back_as_it_was(id: object) -> None:
    (answer,) = exchange(sums_peer(), _message(id=id))
    assert (answer["id"], type(answer["id"])) == (id, type(id))
    assert answer["result"] == {"value": 2}


@pytest.mark.parametrize("id", [True, [], {}, 2**64, -(2**63) - 1, "x" * 257], ids=repr)
def test_what_is_no_id_is_refused_under_none(id: object) -> None:
    (answer,) = exchange(sums_peer(), _message(id=id))
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert answer["error"]["message"].startswith("id: ")


NOT_JSON: dict[str, bytes | str] = {
    "nothing": b"",
    "half": b'{"jsonrpc": "2.0"',
    "two": b"{}{}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "not UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"get_data","params":{"a":"\xff"}}',
    "not UTF-8 in a field that is not read": b'{"jsonrpc":"2.0","id":1,"x":"\xff"}',
    "lone surrogate": '{"jsonrpc":"2.0","id":1,"method":"\ud800"}',
    "lone surrogate as an escape": b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    "NaN": b'{"jsonrpc":"2.0","id":NaN,"method":"get_data"}',
    "control character": b'{"jsonrpc":"2.0","id":"\x01","method":"get_data"}',
    "lone surrogate in params": b'{"jsonrpc":"2.0","id":8,"method":"subtract","params":"\\udc00"}',
    "deep array": b"[" * DEEP + b"]" * DEEP,
    "deep object": b'{"params":' * DEEP + b"1" + b"}" * DEEP,
    "deep params": b'{"jsonrpc":"2.0","id":1,"params":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "open arrays": b"[" * DEEP,
    "object that breaks after its first fault": b'{"jsonrpc":5,"id":1,]',
    "value that breaks": b"nul",
}


@pytest.mark.parametrize("message", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_no_json_is_a_parse_error(message: bytes | str) -> None:
    (answer,) = exchange(sums_peer(), message)
    assert (answer["id"], answer["error"]["code"]) == (None, -32700)


NO_MESSAGE: dict[str, tuple[dict[str, Any], object, str]] = {
    "no version": ({"jsonrpc": None}, 1, "jsonrpc: "),
    "another version": ({"jsonrpc": "1.0"}, 1, "jsonrpc: "),
    "a number as version": ({"jsonrpc": 2.0}, 1, "jsonrpc: "),
    "a number as method": ({"method": 5}, 1, "method: "),
    "null as method": ({"method": None}, 1, "method: "),
}


@pytest.mark.parametrize(("change", "id", "text"), NO_MESSAGE.values(), ids=NO_MESSAGE)
def test_what_is_no_request_is_invalid(change: dict[str, Any], id: object, text: str) -> None:
    (answer,) = exchange(sums_peer(), _message(id=1, **change))
    assert (answer["id"], answer["error"]["code"]) == (id, -32600)
    assert answer["error"]["message"].startswith(text)
    assert answer["error"]["data"] == {"code": "invalid_message"}


@pytest.mark.parametrize("message", ["1", '"x"', "null", "true", "{}", '{"id":1,"params":{}}'])
def test_json_that_is_no_message_is_invalid(message: str) -> None:
    (answer,) = exchange(sums_peer(), message)
    assert answer["error"]["code"] == -32600


BAD_PARAMS: dict[str, tuple[object, str, str]] = {
    "missing": ({"conversationId": "c", "clientId": "x"}, "content", "it is required"),
    "type": ({**SEND, "clientId": 5}, "clientId", "expected `str`, got `int`"),
    "inside a list": (
        {**SEND, "content": [SEND["content"][0], {"type": "text"}]},
        "content[1].text",
        "it is required",
    ),
    "tag": (
        {**SEND, "content": [{"type": "song"}]},
        "content[0].type",
        "expected one of 'text', 'image', 'file'; got 'song'",
    ),
    "one of a few": (
        {**SEND, "delivery": "now"}, "delivery", "expected one of 'queue', 'steer'; got 'now'",
    ),
    "one of a few or nothing": (
        {**SEND, "settings": {"mode": "yolo"}},
        "settings.mode",
        "expected one of 'ask', 'auto-edit', 'full', 'read-only'; got 'yolo'",
    ),
    "in a table": (
        {**SEND, "environment": {"directory": "/", "keys": {"A": 1}}},
        "environment.keys[...]",
        "expected `str`, got `int`",
    ),
    "array": ([1], "", "params must be an object with a member for each parameter"),
    "text": ("x", "", "params must be an object with a member for each parameter"),
    "number": (7, "", "params must be an object with a member for each parameter"),
}  # fmt: skip


@pytest.mark.parametrize(("params", "field", "text"), BAD_PARAMS.values(), ids=BAD_PARAMS)
def test_bad_params_name_the_field_and_what_was_expected(
    params: object, field: str, text: str
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "session/send", "params": params}
    (reply,) = server_peer().receive(json.dumps(message))
    assert isinstance(reply, Reply)
    error = decode(reply.data)["error"]
    where = f"session/send: {field}: " if field else "session/send: "
    assert (error["code"], error["message"]) == (-32602, where + text)
    assert error["data"] == {"code": "bad_request", **({"field": field} if field else {})}


@pytest.mark.parametrize("left_out", [{}, {"params": None}, {"params": {}}], ids=repr)
def test_params_can_be_left_out(left_out: dict[str, Any]) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "get_data", **left_out}
    assert exchange(sums_peer(), json.dumps(message))[0]["result"] == {}


def test_fields_that_are_not_known_are_ignored_everywhere() -> None:
    params = {"minuend": 3, "subtrahend": 1, "mood": {"deep": [None]}}
    (answer,) = exchange(sums_peer(), _message(id=1, params=params, trace="abc", result=5))
    assert answer["result"] == {"value": 2}


def test_an_unknown_method_is_named_up_to_a_limit() -> None:
    (answer,) = exchange(sums_peer(), _message(id=1, method="m" * 1_000_000))
    assert answer["error"]["code"] == -32601
    assert answer["error"]["data"] == {"code": "unknown_method"}
    assert len(answer["error"]["message"]) < 200


def test_a_value_that_is_wrong_is_quoted_up_to_a_limit() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "session/send"}
    params = {**SEND, "delivery": "x" * 1_000_000}
    (reply,) = server_peer().receive(json.dumps({**message, "params": params}))
    assert isinstance(reply, Reply)
    assert len(reply.data) < 2 * limits.ERROR_CHARACTERS_MAX


def test_a_message_that_is_too_large_is_refused_unread() -> None:  # H8-3
    peer = sums_peer(message_bytes_max=200)
    fits = _message(id=1, pad="x" * (200 - len(_message(id=1, pad=""))))
    assert exchange(peer, fits)[0]["result"] == {"value": 2}
    (answer,) = exchange(peer, fits + " ")
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert "200 bytes" in answer["error"]["message"]


def test_an_id_in_work_is_refused_and_the_request_in_work_is_not_touched() -> None:
    peer = sums_peer()
    assert kinds(peer.receive(_message(id=1))) == ["Call"]
    (twice,) = peer.receive(_message(id=1))
    assert isinstance(twice, Reply)
    assert decode(twice.data)["error"]["code"] == -32600
    assert kinds(peer.receive(_message(id="1"))) == ["Call"]
    assert peer.answer(1, Done()) is not None
    assert kinds(peer.receive(_message(id=1))) == ["Call"]


def test_one_request_more_than_the_limit_is_overloaded() -> None:
    peer = sums_peer()
    for id in range(limits.REQUESTS_MAX):
        assert kinds(peer.receive(_message(id=id))) == ["Call"]
    (reply,) = peer.receive(_message(id="more"))
    assert isinstance(reply, Reply)
    assert decode(reply.data)["error"]["data"] == {"code": "overloaded"}
    assert peer.serving == limits.REQUESTS_MAX
    peer.refuse(0, Busy("later"))
    assert kinds(peer.receive(_message(id="more"))) == ["Call"]


def test_a_request_is_answered_once() -> None:
    peer = sums_peer()
    (call,) = peer.receive(_message(id=1))
    assert isinstance(call, Call)
    assert peer.answer(call.id, Done()) is not None
    with pytest.raises(KeyError):
        peer.answer(call.id, Done())
    with pytest.raises(KeyError):
        peer.refuse("never asked", Busy(""))


def test_a_result_that_cannot_be_written_leaves_the_request_open() -> None:
    peer = sums_peer()
    peer.receive(_message(id=1))
    with pytest.raises(TypeError):
        peer.answer(1, object())
    assert peer.refuse(1, Busy("x")) is not None


def test_a_notification_that_cannot_be_read_is_reported_and_not_answered() -> None:
    peer = sums_peer()
    for message in (
        {"jsonrpc": "2.0", "method": "update", "params": {"values": ["x"]}},
        {"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": "x" * 100_000}},
        {"jsonrpc": "2.0", "method": "n" * 100_000},
    ):
        (ignored,) = peer.receive(json.dumps(message))
        assert isinstance(ignored, Ignored)
        assert ignored.method == str(message["method"])[:128]
        assert len(ignored.reason) < 2 * limits.ERROR_CHARACTERS_MAX
