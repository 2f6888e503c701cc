"""Every method of the protocol has its handler, and nothing else has."""

from __future__ import annotations

from vaala.server.api.table import METHODS
from vaala_protocol.methods import REQUESTS


def test_the_table_is_complete() -> None:
    assert set(METHODS) == {kind.method for kind in REQUESTS}
    for kind in REQUESTS:
        assert METHODS[kind.method].params is kind
