"""`vaala usage`: tokens and money, the same from a server and from the data."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

from tests.vaala.cli.conftest import Vaala
from vaala.cli.exits import CommandFailed
from vaala.cli.usage import money, since_ms, together
from vaala_protocol.prices import Cost
from vaala_protocol.settings import Usage
from vaala_protocol.usage import ModelUsage, Spent

STEPS = "  - {say: hello, usage: {input: 1200, output: 30, reasoning: 4}}\n"


def _spent(model: str, tokens: int, cost: Cost | None) -> Spent:
    usage = Usage(input=tokens)
    return Spent(usage=usage, cost=cost, models=(ModelUsage(model=model, usage=usage, cost=cost),))


@pytest.mark.parametrize("way", ["server", "in-process"], indirect=True)
def test_what_was_used_is_told(vaala: Vaala, way: str, script: Callable[[str], str]) -> None:
    model = script(STEPS)
    assert vaala("usage").out == "nothing was used\n"
    assert vaala("run", "--model", model, "Say hello").code == 0
    assert vaala("run", "--model", model, "--continue", "Again").code == 0
    told = vaala("usage")
    (row,) = vaala("list", "--json").lines
    assert told.err == ""
    assert told.out.splitlines() == [
        f"{row['id'][:13]}  2,468 tokens, price not known  Say hello",
        "all 1 conversation: 2,468 tokens, price not known",
        f"  {model}: 2,400 in, 60 out, 8 reasoning; price not known",
    ]
    shown = vaala("usage", row["id"][:13]).out.splitlines()
    assert shown[:4] == [
        "Say hello",
        "2 turns: 2,468 tokens, price not known",
        f"  {model}: 2,400 in, 60 out, 8 reasoning; price not known",
        "  context now 1,234 tokens",
    ]
    assert [line.partition("  1,")[2] for line in shown[4:]] == ["234 tokens, price not known"] * 2
    (one,) = vaala("usage", row["id"], "--json").lines
    assert one["turns"] == 2
    *rows, total = vaala("usage", "--json", "--since", "1h").lines
    assert [row["id"] for row in rows] == [one["id"]]
    assert total == {"total": one["spent"]}
    assert vaala("usage", "--since", "2999-01-01").out == "nothing was used since then\n"


@pytest.mark.parametrize(
    ("cost", "shown"),
    [
        (None, "price not known"),
        (Cost(usd="0"), "$0.0000"),
        (Cost(usd="0.000001"), "$0.0001"),
        (Cost(usd="0.99991"), "$1.0000"),
        (Cost(usd="1234.561"), "$1,234.57"),
        (Cost(usd="2", at_least=True), "at least $2.00"),
    ],
)
def test_money_is_rounded_up(cost: Cost | None, shown: str) -> None:
    assert money(cost) == shown


def test_sums_are_exact_and_never_surer_than_their_parts() -> None:
    tenth = _spent("a", 1, Cost(usd="0.1"))
    assert together([tenth] * 3).cost == Cost(usd="0.3")
    assert together([tenth, _spent("b", 1, None)]).cost == Cost(usd="0.1", at_least=True)
    assert together([tenth, _spent("b", 0, None)]).cost == Cost(usd="0.1")
    assert together([_spent("a", 1, None)] * 2).cost is None
    many = together([tenth, _spent("a", 4, Cost(usd="0.05", at_least=True)), tenth])
    assert many.models == (
        ModelUsage(model="a", usage=Usage(input=6), cost=Cost(usd="0.25", at_least=True)),
    )
    assert together([]) == Spent()


NOW_S = 1_796_083_200.0


@pytest.mark.parametrize(
    ("text", "hours"), [("1h", 1), ("12h", 12), ("7d", 168), ("2w", 336), ("0h", 0)]
)
def test_since_can_be_so_long_ago(text: str, hours: int) -> None:
    assert since_ms(text, NOW_S) == (NOW_S - hours * 3600) * 1000


def test_since_can_be_a_day() -> None:
    local = datetime(2026, 11, 30).astimezone()
    assert since_ms("2026-11-30", NOW_S) == int(local.timestamp() * 1000)


@pytest.mark.parametrize("text", ["", "yesterday", "7", "99999d", "2026-13-01", "-1d"])
def test_what_is_no_time_is_told(text: str) -> None:
    with pytest.raises(CommandFailed, match="expected a day"):
        since_ms(text, NOW_S)
