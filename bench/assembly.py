"""What a request costs to put together, for each wire format and length of history.

    python bench/assembly.py
    python bench/assembly.py --items 10,100000 --rounds 50

The history is that of a warm session: of four items one is a message, one an answer, and two are
calls with their results. Assembled is one request as a turn makes it: the history as it is kept, an
open step, the body. Dump is the same body written from its values, which no client can do without;
beside it is what the assembly costs more. Milliseconds of CPU, medians.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import trio
from msgspec import json

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.vaala.testing.answers import MODELS, NotSent, body_of, model_of  # noqa: E402
from vaala.agent.history import History, steps_of  # noqa: E402
from vaala.models.base import Model, ModelRequest, ToolSpec  # noqa: E402
from vaala_protocol.calls import OtherDetails  # noqa: E402
from vaala_protocol.content import TextContent  # noqa: E402
from vaala_protocol.items import AssistantMessage, Item, ToolCall, UserMessage  # noqa: E402

WORDS = "A line of a message as people and models write them, neither long nor short. "
TOOL = ToolSpec("read_file", "Reads a file.", {"type": "object", "properties": {}})


def items(count: int) -> Iterator[Item]:
    for number in range(count):
        turn, at = f"turn {number // 4}", number + 1
        match number % 4:
            case 0:
                yield asked(at, turn)
            case 1 | 2:
                yield ToolCall(
                    id=f"01a2{number:028x}", at=at, turn_id=turn, step=1, created_at=1,
                    completed_at=1, name=TOOL.name, arguments='{"path":"a.py"}', state="done",
                    details=OtherDetails(title=""), result=(TextContent(text=WORDS * 3),),
                )  # fmt: skip
            case _:
                yield AssistantMessage(
                    id=f"{number}", at=at, turn_id=turn, step=2, created_at=1, completed_at=1,
                    text=WORDS * 2,
                )  # fmt: skip


def asked(at: int, turn: str) -> UserMessage:
    return UserMessage(
        id=f"{at}", at=at, turn_id=turn, step=1, created_at=1, completed_at=1,
        content=(TextContent(text=WORDS),),
    )  # fmt: skip


def history_of(model: Model, count: int) -> History:
    history = History(model)
    for step in steps_of(items(count)):
        history.close(step)
    return history


def cpu_ms(begun: float) -> float:
    return (time.process_time() - begun) * 1000


async def measure(model: Model, http: NotSent, count: int, rounds: int) -> tuple[float, float, int]:
    history = history_of(model, count)
    last = asked(count + 1, "last")
    ours: list[float] = []
    dump: list[float] = []
    body = b""
    for _ in range(rounds):
        begun = time.process_time()
        closed, messages = history.request([last])
        body = await body_of(model, http, ModelRequest("You help.", (TOOL,), closed, messages))
        ours.append(cpu_ms(begun))
        values = json.decode(body)
        begun = time.process_time()
        json.encode(values)
        dump.append(cpu_ms(begun))
    return statistics.median(ours), statistics.median(dump), len(body)


async def run(counts: list[int], rounds: int) -> None:
    print("format        items  assembled      dump   beside it   body bytes")
    http = NotSent()
    for api, names in MODELS.items():
        first = 0.0
        for count in counts:
            model = model_of(api, names[0], http)
            ours, dump, size = await measure(model, http, count, rounds)
            first = first or ours - dump
            print(
                f"{api:10} {count:8} {ours:10.3f} {dump:9.3f} {ours - dump:11.3f} {size:12}"
                f"   {(ours - dump) / first:5.2f} x that at {counts[0]}"
            )
    await http.aclose()


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of putting a request together")
    parser.add_argument("--items", default="10,1000,10000", help="lengths, with commas between")
    parser.add_argument("--rounds", type=int, default=50)
    args = parser.parse_args()
    trio.run(run, [int(count) for count in args.items.split(",")], args.rounds)


if __name__ == "__main__":
    main()
