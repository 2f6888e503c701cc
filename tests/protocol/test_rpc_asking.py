"""Requests of this side: each gets its answer as the type, or the refusal, that was sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from tests.protocol.sums import Difference, SubtractParams, kinds, sums_peer
from vaala_protocol import errors, limits
from vaala_protocol.base import Malformed, decode
from vaala_protocol.content import TextContent
from vaala_protocol.errors import BadRequest, Failed, NotPending, Overloaded, Refused
from vaala_protocol.methods.conversation import ConversationGetParams
from vaala_protocol.methods.runtime import RuntimeStatusParams
from vaala_protocol.methods.session import SessionSendParams
from vaala_protocol.rpc import Answer, Call, Ignored, client_peer, error_body, refusal, server_peer

QUESTION = SubtractParams(minuend=3, subtrahend=1)
KINDS: list[type[Refused]] = [
    kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Refused)
]


def _answered(**members: Any) -> Any:
    """Return what comes out for an answer with these members to the first request."""
    peer = sums_peer()
    id, _ = peer.ask(QUESTION)
    (received,) = peer.receive(json.dumps({"jsonrpc": "2.0", "id": id, **members}))
    assert peer.asked == 0
    return received


def test_ids_count_up_and_answers_may_come_in_any_order() -> None:
    peer = sums_peer()
    first, message = peer.ask(QUESTION)
    second, _ = peer.ask(QUESTION)
    assert (first, second) == (1, 2)
    assert decode(message) == {
        "jsonrpc": "2.0", "id": 1, "method": "subtract",
        "params": {"minuend": 3, "subtrahend": 1},
    }  # fmt: skip
    for id in (second, first):
        answer = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"value": id}})
        assert peer.receive(answer) == [Answer(id, Difference(value=id))]


def test_a_batch_of_answers_is_taken_apart() -> None:
    peer = sums_peer()
    ids = [peer.ask(QUESTION)[0] for _ in range(3)]
    answers = [{"jsonrpc": "2.0", "id": id, "result": {"value": id}} for id in ids]
    assert peer.receive(json.dumps(answers)) == [Answer(id, Difference(value=id)) for id in ids]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_refusal_arrives_as_the_class_that_was_raised(kind: type[Refused]) -> None:
    client, server = client_peer(), server_peer()
    id, message = client.ask(RuntimeStatusParams())
    server.receive(message)
    sent = server.refuse(id, kind("the text"))
    assert sent is not None
    (answer,) = client.receive(sent)
    assert isinstance(answer, Answer)
    assert type(answer.error) is kind
    assert (str(answer.error), answer.result) == ("the text", None)


def test_no_two_refusals_have_the_same_code_or_number() -> None:
    bodies = [error_body(kind("")) for kind in KINDS]
    assert len({body.code for body in bodies}) == len(KINDS)
    assert len({body.data.code for body in bodies}) == len(KINDS)
    own = {body.code for body in bodies} - {-32600, -32601, -32602, -32603}
    assert all(-32099 <= number <= -32000 for number in own)


def test_what_a_refusal_carries_arrives_with_it() -> None:
    wrong = refusal(msgspec.json.encode(error_body(BadRequest("no", field="content[0]"))))
    assert isinstance(wrong, BadRequest)
    assert wrong.field == "content[0]"
    failed = refusal(msgspec.json.encode(error_body(Failed("a bug", trace="7f3a"))))
    assert isinstance(failed, Failed)
    assert failed.trace == "7f3a"


def test_a_class_of_another_package_goes_as_its_base_and_keeps_its_code() -> None:
    class BadArchive(BadRequest):
        code = "bad_archive"

    body = error_body(BadArchive("no archive"))
    assert body.code == -32602
    back = refusal(msgspec.json.encode(body))
    assert type(back) is BadRequest
    assert back.code == "bad_archive"
    assert BadRequest.code == "bad_request"


FOREIGN: dict[str, tuple[dict[str, Any], type[Refused], str, str]] = {
    "a code of a newer server": (
        {"code": -32050, "message": "no", "data": {"code": "too_late"}}, Refused, "too_late", "no",
    ),
    "a number alone": ({"code": -32002, "message": "late"}, NotPending, "not_pending", "late"),
    "a standard number": ({"code": -32603, "message": "x"}, Failed, "failed", "x"),
    "a parse error": (
        {"code": -32700, "message": "x"}, errors.InvalidMessage, "invalid_message", "x",
    ),
    "a number of somebody else": ({"code": 7, "message": "x"}, Refused, "refused", "x"),
    "data of somebody else": ({"code": 7, "message": "x", "data": [1]}, Refused, "refused", "x"),
    "no message": ({"code": -32003}, errors.Busy, "busy", ""),
}  # fmt: skip


@pytest.mark.parametrize(("error", "kind", "code", "text"), FOREIGN.values(), ids=FOREIGN)
def test_an_error_of_another_program_is_a_refusal(
    error: dict[str, Any], kind: type[Refused], code: str, text: str
) -> None:
    answer = _answered(error=error)
    assert type(answer.error) is kind
    assert (answer.error.code, str(answer.error)) == (code, text)


@pytest.mark.parametrize(
    "members",
    [
        {"result": {"value": "two"}},
        {"result": None},
        {"result": [2]},
        {"error": None},
        {"error": "no"},
        {"error": {"message": "no code"}},
        {"result": {"value": 2}, "jsonrpc": 2},
        {},
    ],
    ids=repr,
)
def test_an_answer_of_another_shape_ends_its_request_as_malformed(members: dict[str, Any]) -> None:
    answer = _answered(**members)
    assert isinstance(answer, Answer)
    assert isinstance(answer.error, Malformed)


def test_an_error_beside_a_result_of_null_is_an_error() -> None:
    answer = _answered(result=None, error={"code": -32003, "message": "busy"})
    assert isinstance(answer.error, errors.Busy)


def test_a_null_error_beside_a_result_is_none() -> None:
    assert _answered(result={"value": 2}, error=None) == Answer(1, Difference(value=2))


@pytest.mark.parametrize(
    "members",
    [
        {"id": 2, "result": {}},
        {"id": "1", "result": {}},
        {"id": None, "error": {"code": -32700, "message": "what was that"}},
        {"result": {}},
        {"id": [1], "result": {}},
    ],
    ids=repr,
)
def test_an_answer_to_nothing_is_reported_and_never_answered(members: dict[str, Any]) -> None:
    peer = sums_peer()
    peer.ask(QUESTION)
    (ignored,) = peer.receive(json.dumps({"jsonrpc": "2.0", **members}))
    assert isinstance(ignored, Ignored)
    assert members.get("error", {}).get("message", "") in ignored.reason
    assert peer.asked == 1


def test_an_answer_comes_once() -> None:
    peer = sums_peer()
    id, _ = peer.ask(QUESTION)
    answer = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"value": 1}})
    assert [kinds(peer.receive(answer)) for _ in range(2)] == [["Answer"], ["Ignored"]]


def test_a_forgotten_request_makes_room_and_its_answer_is_ignored() -> None:
    peer = sums_peer()
    id, _ = peer.ask(QUESTION)
    peer.forget(id)
    peer.forget(id)
    assert peer.asked == 0
    answer = json.dumps({"jsonrpc": "2.0", "id": id, "result": {"value": 1}})
    assert kinds(peer.receive(answer)) == ["Ignored"]
    assert peer.ask(QUESTION)[0] == id + 1


def test_one_question_more_than_the_limit_is_overloaded() -> None:
    peer = sums_peer()
    for _ in range(limits.REQUESTS_MAX):
        peer.ask(QUESTION)
    with pytest.raises(Overloaded):
        peer.ask(QUESTION)
    peer.forget(1)
    assert peer.ask(QUESTION)[0] == limits.REQUESTS_MAX + 1


def test_text_that_no_json_can_hold_is_sent_with_question_marks() -> None:
    client, server = client_peer(), server_peer()
    asked = ConversationGetParams(conversation_id="/home/\udcff/\U0001f600")
    _, message = client.ask(asked)
    arrived = ConversationGetParams(conversation_id="/home/?/\U0001f600")
    assert server.receive(message) == [Call(1, "conversation/get", arrived)]


def test_so_is_text_inside_of_lists() -> None:
    client, server = client_peer(), server_peer()

    def said(text: str) -> SessionSendParams:
        content = (TextContent(text=text),)
        return SessionSendParams(conversation_id="c", client_id="k", content=content)

    _, message = client.ask(said("caf\udce9"))
    assert server.receive(message) == [Call(1, "session/send", said("caf?"))]


def test_an_endless_error_text_is_cut() -> None:
    body = error_body(Refused("x" * 1_000_000))
    assert len(body.message) <= limits.ERROR_CHARACTERS_MAX + 3


def test_a_message_that_the_other_side_would_not_take_is_not_made() -> None:
    peer = sums_peer(sent_bytes_max=100)
    with pytest.raises(BadRequest, match=r"a message of 1\d\d bytes; at most 100"):
        peer.ask(SubtractParams(minuend=10**30, subtrahend=10**30))
    assert peer.asked == 0
    assert peer.ask(SubtractParams(minuend=1, subtrahend=1))[0] == 1


def test_an_answer_that_the_other_side_would_not_take_is_refused() -> None:
    peer = sums_peer(sent_bytes_max=300)
    peer.receive('{"jsonrpc": "2.0", "id": 1, "method": "get_data"}')
    answer = peer.answer(1, Difference(value=10**400))
    assert answer is not None
    error = decode(answer)["error"]
    assert error["data"]["code"] == "overloaded"
    assert "is more than a message holds" in error["message"]
    assert peer.serving == 0
