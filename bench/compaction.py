"""Conversations that are far longer than the window of their model, and go on.

    python bench/compaction.py                      2,000 turns, and 500 calls of 8 KB in one turn
    python bench/compaction.py --turns 200 --calls 50

The model is a chat-completions server on loopback in this process, with a window of 32,768 tokens
of 3.5 bytes each. It refuses what is longer, as OpenAI does, and reports what it read. Each case
runs with a window that is configured and one that is not, and with summaries that succeed and
that fail every time. Printed are the refusals, the changes of the context, the tokens that the
model read in all and for summaries, the largest request, and the time.

It fails when a turn does not end well, or a request lacks the task or the rules.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import trio

import vaala
from vaala.agent.definition import AgentDefinition, Budgets
from vaala.handle import ConversationHandle
from vaala.models.provider import Provider
from vaala.models.set import open_models
from vaala.testing.provider import Reply, Request, chat_server
from vaala.testing.provider_chat import call, error, text, tool_calls, usage_chunk
from vaala_protocol.items import ContextCut, ContextSummary
from vaala_protocol.settings import Settings
from vaala_protocol.state import TurnResult

WINDOW = 32_768
BYTES_PER_TOKEN = 3.5
TASK = "The task: catalogue every star of the northern sky."
RULE = "Never run git push."
WORDS = "It was a clear night and the stars were many, and each of them had a name. "


@dataclass
class Sky:
    """The model: it talks, or asks for ``calls`` looks one after the other."""

    calls: int
    summaries_fail: bool
    asked: int = 0
    refused: int = 0
    summaries: int = 0
    summary_tokens: int = 0
    tokens: int = 0
    largest: int = 0
    lacking: int = 0

    def answer(self, request: Request) -> Reply:
        if request.method != "POST":
            return error(404, "this server lists no models")
        tokens = int(len(request.body) / BYTES_PER_TOKEN)
        if tokens > WINDOW:
            self.refused += 1
            told = f"This model's maximum context length is {WINDOW} tokens. However, your "
            return error(400, f"{told}messages resulted in {tokens} tokens.")
        self.tokens += tokens
        self.largest = max(self.largest, tokens)
        usage = usage_chunk(tokens, 20)
        if b"You write the memory of an agent" in request.body:
            self.summaries += 1
            self.summary_tokens += tokens
            if self.summaries_fail:
                return error(400, "no summaries today")
            return text("Many stars are in the catalogue. ", WORDS * 4, usage=usage)
        self.lacking += TASK.encode() not in request.body or RULE.encode() not in request.body
        self.asked += 1
        if self.asked <= self.calls:
            return tool_calls(call("look", part=self.asked), usage=usage)
        return text(WORDS * 6, usage=usage)


async def look(part: int) -> str:
    """Look at a part of the sky."""
    return f"part {part}: " + "star " * (8 * 1024 // 5)


async def talk_on(talk: ConversationHandle, turns: int) -> TurnResult:
    result = await talk.run(TASK)
    for number in range(1, turns):
        result = await talk.run(f"And what of star {number}?")
        if result.turn.state != "completed":
            break
    return result


async def changes_of(talk: ConversationHandle) -> str:
    """Return how many summaries, cuts and shortenings the transcript has."""
    found = {"summaries": 0, "cuts": 0, "shortenings": 0}
    at, later = 0, True
    while later:
        page = await talk.items(after=at, limit=200)
        at, later = (page.items[-1].at if page.items else at), page.later
        for item in page.items:
            if isinstance(item, ContextSummary):
                found["summaries"] += 1
            elif isinstance(item, ContextCut):
                found["shortenings" if item.shortens else "cuts"] += 1
    return ", ".join(f"{count} {name}" for name, count in found.items())


async def run(turns: int, calls: int, *, known: bool, fail: bool, root: Path) -> bool:
    sky = Sky(calls, fail)
    agent = AgentDefinition(
        "default", f"You count stars. {RULE}", tools=("look",), budgets=Budgets(steps_max=10_000)
    )
    async with chat_server() as server:
        server.answer(sky.answer)
        windows = {"sky": WINDOW} if known else {}
        provider = Provider("loopback", server.base_url, models=("sky",), windows=windows)
        async with (
            open_models([provider], {}) as models,
            vaala.open_runtime(models=models, agents={"default": agent}, tools=[look]) as runtime,
        ):
            talk = await runtime.create_conversation(
                directory=str(root), settings=Settings(mode="full", model="loopback/sky")
            )
            begun, cpu = time.monotonic(), time.process_time()
            result = await talk_on(talk, turns)
            seconds, cpu = time.monotonic() - begun, time.process_time() - cpu
            changes = await changes_of(talk)
    good = result.turn.state == "completed" and not sky.lacking and sky.asked >= turns + calls
    name = f"{turns:5} turns {calls:4} calls, window {'known' if known else 'unknown':7}"
    print(f"{name}, summaries {'fail' if fail else 'succeed'}: {'good' if good else 'BAD'}")
    print(
        f"    {sky.asked} answers, {sky.refused} refused; {changes}; {sky.tokens:,} tokens read, "
        f"{sky.summary_tokens:,} for summaries; largest {sky.largest:,}; {seconds:.1f} s, "
        f"{cpu:.1f} s CPU"
    )
    if not good:
        print(f"    {result.turn.state}: {result.turn.message}; {sky.lacking} requests lack")
    return good


async def every(turns: int, calls: int) -> int:
    good = True
    with tempfile.TemporaryDirectory() as directory:
        for of_turns, of_calls in ((turns, 0), (1, calls)):
            for known in (True, False):
                for fail in (False, True):
                    root = Path(directory)
                    good &= await run(of_turns, of_calls, known=known, fail=fail, root=root)
    return 0 if good else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=2_000)
    parser.add_argument("--calls", type=int, default=500)
    given = parser.parse_args()
    return trio.run(every, given.turns, given.calls)


if __name__ == "__main__":
    sys.exit(main())
