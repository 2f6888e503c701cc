"""Many sessions at a provider that lets few requests through.

    python bench/rate_limit.py
    python bench/rate_limit.py --sessions 50 --most 5 --window 2

A chat-completions server on loopback takes so many requests in each window of time and refuses all
others with 429 and Retry-After. Each session makes one turn. Told are the requests that came, those
that came though their time was told to be later, how often one session had to ask at most, and how
far from the order in which the sessions began they were let through.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field

import trio

import vaala
from vaala.models.provider import Provider
from vaala.models.set import open_models
from vaala.testing.provider import Reply, Request, chat_server
from vaala.testing.provider_chat import text
from vaala_protocol.settings import Settings

BETWEEN_S = 0.01
"""Between the starts of two sessions, so that they have an order."""
ON_ITS_WAY_S = 0.25
"""A request within this time of a refusal may have been sent before that."""


@dataclass
class Gate:
    most: int
    window_s: int
    opens: float = 0.0
    left: int = 0
    refused: int = 0
    early: int = 0
    refused_at: float = math.inf
    asked: Counter[str] = field(default_factory=Counter[str])
    """Requests by the session, which writes its number."""
    taken: list[str] = field(default_factory=list[str])

    def answer(self, request: Request) -> Reply:
        now = time.monotonic()
        prompt = request.json["messages"][-1]["content"]
        self.asked[prompt] += 1
        if now >= self.opens:
            self.opens, self.left = now + self.window_s, self.most
            self.refused_at = math.inf
        elif self.left == 0 and now > self.refused_at + ON_ITS_WAY_S:
            self.early += 1
        if self.left == 0:
            self.refused, self.refused_at = self.refused + 1, now
            wait = math.ceil(self.opens - now)
            body = b'{"error":{"message":"too many requests","type":"rate_limit"}}'
            head = (("retry-after", str(wait)), ("content-type", "application/json"))
            return Reply((body,), status=429, headers=head)
        self.left -= 1
        self.taken.append(prompt)
        return text("done")

    @property
    def overtaken_most(self) -> int:
        """How many places a session was let through before or after its own, at most; without the
        first window, in which nobody waited for others."""
        later = [int(prompt) for prompt in self.taken[self.most :]]
        return max(abs(a - b) for a, b in zip(later, sorted(later), strict=True))


async def run(sessions: int, gate: Gate) -> None:
    states: list[str] = []
    with tempfile.TemporaryDirectory() as root:
        async with chat_server() as server:
            server.answer(gate.answer)
            provider = Provider("mock", server.base_url, models=("mock",))
            async with (
                open_models([provider], {}) as models,
                vaala.open_runtime(models=models) as runtime,
            ):
                talks = [
                    await runtime.create_conversation(
                        directory=root, settings=Settings(model="mock/mock")
                    )
                    for _ in range(sessions)
                ]
                began = time.monotonic()

                async def one(number: int) -> None:
                    result = await talks[number].run(str(number))
                    states.append(result.turn.state)

                async with trio.open_nursery() as nursery:
                    for number in range(sessions):
                        nursery.start_soon(one, number)
                        await trio.sleep(BETWEEN_S)
                took = time.monotonic() - began
    least = math.ceil(sessions / gate.most - 1) * gate.window_s
    print(f"{sessions} sessions, {gate.most} requests in {gate.window_s} s: "
          f"{states.count('completed')} completed in {took:.1f} s (at best {least} s)")  # fmt: skip
    print(f"{gate.asked.total()} requests, {gate.refused} refused, {gate.early} before their time; "
          f"at most {max(gate.asked.values())} of one session; "
          f"none more than {gate.overtaken_most} places out of order")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description="Sessions at a provider that limits requests")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--most", type=int, default=5, help="requests in a window")
    parser.add_argument("--window", type=int, default=2, help="seconds")
    args = parser.parse_args()
    trio.run(run, args.sessions, Gate(args.most, args.window))


if __name__ == "__main__":
    main()
