"""The README tells the whole protocol, and what it shows is true."""

from __future__ import annotations

import json
import re
from typing import Any, get_args

import pytest
from msgspec import Raw

from vaala.discovery import (
    AUTHORIZATION_HEADER,
    PROOF_HEADER,
    WEBSOCKET_PATH,
    bearer,
    client_proof,
    proof,
)
from vaala.discovery import limits as discovery_limits
from vaala_protocol import limits
from vaala_protocol.base import decode
from vaala_protocol.errors import Refused
from vaala_protocol.events import Event, UnknownEvent
from vaala_protocol.items import Item
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.methods.runtime import RuntimeEvent
from vaala_protocol.rpc import Answer, Call, Note, Peer, client_peer, server_peer
from vaala_protocol.rpc.reading import read_params
from vaala_protocol.rpc.refusals import NUMBERS
from vaala_protocol.schema import README
from vaala_protocol.schema.reference import with_reference
from vaala_protocol.schema.shapes import fields_of, method_doc

TEXT = README.read_text("utf-8")
WORDS = " ".join(TEXT.split())
METHODS: tuple[Any, ...] = (*REQUESTS, *CLIENT_REQUESTS, *NOTIFICATIONS)
TAGGED: tuple[Any, ...] = tuple(
    kind for union in (Event, RuntimeEvent, Item) for kind in get_args(union)
    if kind is not UnknownEvent
)  # fmt: skip
FENCE = re.compile(r"^```json\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = [json.loads(part) for block in FENCE.findall(TEXT) for part in block.split("\n\n")]


@pytest.mark.parametrize("kind", METHODS, ids=lambda kind: kind.method)
def test_every_method_and_notification_is_told(kind: Any) -> None:
    start = WORDS.index(f"- **`{kind.method}`** `{{")
    entry = WORDS[start:].split(" - **`")[0]
    for field in fields_of(kind):
        assert re.search(rf"\b{field.name}\??: ", entry)
    assert " ".join(method_doc(kind).split()) in entry
    if hasattr(kind, "result"):
        assert f"→ `{kind.result.__name__}`" in entry


@pytest.mark.parametrize("kind", TAGGED, ids=lambda kind: kind.__name__)
def test_every_event_and_kind_of_item_is_told(kind: Any) -> None:
    doc = " ".join(method_doc(kind).split())
    assert doc
    assert re.search(rf"- \*\*`{kind.__struct_config__.tag}`\*\*[^*]*{re.escape(doc)}", WORDS)


@pytest.mark.parametrize("kind", [*get_args(Event)], ids=lambda kind: kind.__name__)
def test_what_every_event_does_is_told(kind: Any) -> None:
    rows = [row for row in TEXT.split("\n") if row.startswith("| `")]
    told = any(f"`{kind.__struct_config__.tag}`" in row for row in rows)
    assert told is (kind is not UnknownEvent)


@pytest.mark.parametrize(("kind", "number"), NUMBERS.items(), ids=lambda one: str(one))
def test_every_error_is_told(kind: type[Refused], number: int) -> None:
    assert f"| {number} | `{kind.code}` |" in TEXT


@pytest.mark.parametrize(
    ("row", "bytes_or_count"),
    [
        ("| one message to the server | {} MiB |", limits.MESSAGE_BYTES_MAX / 2**20),
        ("| one message from the server | {} MiB |", limits.ANSWER_BYTES_MAX / 2**20),
        ("| one batch | {} messages,", limits.BATCH_MESSAGES_MAX),
        ("messages, {} MiB |", limits.BATCH_BYTES_MAX / 2**20),
        ("| requests of one side without an answer | {} |", limits.REQUESTS_MAX),
        ("| a request id | {} characters |", limits.ID_CHARACTERS_MAX),
        ("up to {} characters of randomness", discovery_limits.CHALLENGE_CHARACTERS_MAX),
    ],
)
def test_every_limit_is_told(row: str, bytes_or_count: float) -> None:
    assert row.format(f"{bytes_or_count:g}") in WORDS


def test_the_handshake_is_the_one_that_is_done() -> None:
    assert f"`{WEBSOCKET_PATH}`" in TEXT
    assert bearer("TOKEN") == "Bearer TOKEN"
    for header in (AUTHORIZATION_HEADER, PROOF_HEADER):
        assert header in TEXT.lower()
    scheme, challenge, shown = client_proof("q1w2e3", "Zm9vYmFy").replace(".", " ").split()
    assert f"{scheme} CHALLENGE.PROOF" in TEXT
    assert challenge == "Zm9vYmFy"
    assert f"the client's proof is `{shown}`" in WORDS
    assert f"the server's `{proof('q1w2e3', challenge)}`" in WORDS


def test_the_examples_are_a_conversation_that_two_peers_can_have() -> None:
    client, server = client_peer(), server_peer()
    heard = [_exchanged(client, server, message) for message in EXAMPLES]
    assert heard == [
        "runtime/initialize", "InitializeResult",
        "conversation/create", "ConversationInfo",
        "conversation/subscribe", "ConversationSubscribeResult",
        "session/send", "InputInfo",
        "conversation/event",
        "approval/answer", "NotPending",
    ]  # fmt: skip


def _exchanged(client: Peer, server: Peer, message: dict[str, Any]) -> str:
    """Give a message to the side that it is for, as the other side would have said it."""
    if "id" in message and "method" in message:
        kind = next(kind for kind in REQUESTS if kind.method == message["method"])
        params: Any = read_params(kind.method, Raw(json.dumps(message["params"])), kind)
        _, sent = client.ask(params)
        assert decode(sent) == message
        (call,) = server.receive(json.dumps(message))
        assert isinstance(call, Call)
        return call.method
    (received,) = client.receive(json.dumps(message))
    if isinstance(received, Note):
        assert decode(server.tell(received.params)) == message  # type: ignore[arg-type] # heard
        return received.method
    assert isinstance(received, Answer)
    if isinstance(received.error, Refused):
        sent_back = server.refuse(received.id, received.error)
    else:
        assert received.error is None
        sent_back = server.answer(received.id, received.result)
    assert sent_back is not None
    assert decode(sent_back) == message
    return type(received.error or received.result).__name__


@pytest.mark.parametrize("times", [0, 2])
def test_a_text_without_its_one_place_for_the_reference_is_refused(times: int) -> None:
    part = TEXT[TEXT.index("<!-- generated") :]
    with pytest.raises(ValueError, match=f"it has {times}"):
        with_reference("# nothing\n" + part * times)
