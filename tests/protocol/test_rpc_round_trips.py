"""What one side says is what the other hears, for every method and with any values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.generated import values
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.rpc import Answer, Call, Note, Peer, client_peer, server_peer

EXAMPLES = settings(max_examples=12)


def _sides(kind: type[Any]) -> tuple[Peer, Peer]:
    """Return who asks and who answers."""
    return (client_peer(), server_peer()) if kind in REQUESTS else (server_peer(), client_peer())


@pytest.mark.parametrize("kind", [*REQUESTS, *CLIENT_REQUESTS], ids=lambda kind: kind.method)
@EXAMPLES
@given(data=st.data())
def test_a_request_and_its_result_arrive_as_they_were(kind: type[Any], data: st.DataObject) -> None:
    asking, serving = _sides(kind)
    params = data.draw(values(kind))
    result = data.draw(values(kind.result))
    id, message = asking.ask(params)
    assert serving.receive(message.decode()) == [Call(id, kind.method, params)]
    answer = serving.answer(id, result)
    assert answer is not None
    assert asking.receive(answer) == [Answer(id, result)]


@pytest.mark.parametrize("kind", NOTIFICATIONS, ids=lambda kind: kind.method)
@EXAMPLES
@given(data=st.data())
def test_a_notification_arrives_as_it_was(kind: type[Any], data: st.DataObject) -> None:
    said = data.draw(values(kind))
    assert client_peer().receive(server_peer().tell(said)) == [Note(kind.method, said)]
