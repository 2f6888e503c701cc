"""No bytes whatever raise, hang or stay: a peer answers, reports or hands on, and goes on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.generated import JSON, values
from vaala_protocol.base import decode
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS, Notification
from vaala_protocol.methods.base import Done
from vaala_protocol.methods.runtime import RuntimeStatusParams
from vaala_protocol.rpc import Call, Peer, Reply, client_peer, server_peer
from vaala_protocol.rpc.refusals import ErrorBody

MANY = settings(max_examples=250)
WORDS = (
    b'{"jsonrpc":"2.0",', b'"id":', b"1", b"null", b'"x"', b'"method":', b'"runtime/status"', b"{}",
    b'"session/send"', b'"params":', b"[", b"]", b"{", b"}", b",", b'"', b"\\ud800", b"\xff",
    b'"result":', b'"error":', b"true", b"1e999", b"-", b" ", b"\x00", b'{"code":-32000}', b"2.0",
)  # fmt: skip
PIECES = st.lists(st.sampled_from(WORDS), max_size=30).map(b"".join)
KINDS: tuple[Any, ...] = (*REQUESTS, *CLIENT_REQUESTS, *NOTIFICATIONS)


def _swallow(peer: Peer, message: bytes | str) -> None:
    """Give a message to a peer and hold it to all that it promises about any message."""
    before = peer.serving
    received = peer.receive(message)
    calls = [one for one in received if isinstance(one, Call)]
    assert peer.serving == before + len(calls)
    sent = [one.data for one in received if isinstance(one, Reply)]
    sent += filter(None, (peer.answer(call.id, Done()) for call in calls))
    assert peer.serving == before
    for answer in sent:
        _check_answer(answer)


def _check_answer(answer: bytes) -> None:
    message = decode(answer)
    members = message if isinstance(message, list) else [message]
    assert members
    for member in members:
        assert member["jsonrpc"] == "2.0"
        assert "id" in member
        assert ("result" in member) != ("error" in member)
        if "error" in member:
            msgspec.convert(member["error"], ErrorBody)


def _still_works(peer: Peer) -> None:
    (call,) = peer.receive('{"jsonrpc":"2.0","id":"after","method":"runtime/status"}')
    assert call == Call("after", "runtime/status", RuntimeStatusParams())


@MANY
@given(st.binary(max_size=200) | st.text(max_size=200) | PIECES)
def test_any_bytes(message: bytes | str) -> None:
    client, server = client_peer(), server_peer()
    client.ask(RuntimeStatusParams())
    _swallow(client, message)
    _swallow(server, message)
    _still_works(server)


MEMBERS = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | JSON,
        "id": JSON,
        "method": st.sampled_from([kind.method for kind in KINDS]) | JSON,
        "params": JSON,
        "result": JSON,
        "error": st.fixed_dictionaries({}, optional={"code": JSON, "message": JSON, "data": JSON})
        | JSON,
    },
)


@MANY
@given(MEMBERS | st.lists(MEMBERS | JSON, max_size=4))
def test_any_message_shaped_json(message: Any) -> None:
    text = json.dumps(message)
    client, server = client_peer(), server_peer()
    client.ask(RuntimeStatusParams())
    _swallow(client, text)
    _swallow(server, text)
    _still_works(server)


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A true message of any method with a few bytes cut out, put in or changed."""
    kind = draw(st.sampled_from(KINDS))
    params = draw(values(kind))
    peer = server_peer()
    message = peer.tell(params) if issubclass(kind, Notification) else peer.ask(params)[1]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(message)))
        end = draw(st.integers(start, min(len(message), start + 8)))
        message = message[:start] + draw(st.binary(max_size=4) | PIECES) + message[end:]
    return message


@settings(max_examples=150)
@given(mutated())
def test_any_mutated_message(message: bytes) -> None:
    client, server = client_peer(), server_peer()
    _swallow(client, message)
    _swallow(server, message)
    _still_works(server)


@settings(max_examples=100)
@given(st.lists(st.binary(max_size=40) | PIECES, max_size=20))
def test_answers_never_go_back_and_forth(messages: list[bytes]) -> None:
    """What a peer sends because of garbage makes the other side send nothing."""
    client, server = client_peer(), server_peer()
    for message in messages:
        for received in server.receive(message):
            if isinstance(received, Reply):
                assert not [one for one in client.receive(received.data) if isinstance(one, Reply)]
