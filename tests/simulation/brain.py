"""The world around a runtime: a model, tools and processes that behave at random."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncGenerator
from random import Random
from typing import Any

import trio

from tests.vaala.runtime.fake_executor import FakeExecutor
from vaala.models.base import Finish, ModelEvent, ModelFailure, ModelRequest, TextDelta
from vaala.testing.function_model import FunctionModel, Said, answer, newest
from vaala.tools.base import Tool, ToolContext, ToolFailure
from vaala.tools.function import tool
from vaala_protocol.settings import ErrorKind

WORDS = ("alpha", "beta", "gamma", "delta", "你好", "世界")
_STARTED = re.compile(r"Started session ([0-9a-f-]{36})")
_COMMAND = re.compile(r"\b(c[0-9a-f]{6})\b")
_Call = tuple[str, dict[str, Any]]


class Brain:
    """``calm``: the model answers at once and calls nothing, so that everything comes to rest."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.calm = False
        self.model = FunctionModel(self._respond)
        self.executor = FakeExecutor()
        self.runs: Counter[str] = Counter()
        """How often a call with a side effect ran, by call id."""
        self.tools: list[Tool] = [
            tool(self.touch, access="execute"),
            tool(self.look, access="read"),
        ]

    def words(self, most: int = 6) -> str:
        text = " ".join(self.random.choice(WORDS) for _ in range(self.random.randint(1, most)))
        return text * (40 if self.random.random() < 0.05 else 1)

    async def touch(self, context: ToolContext, note: str) -> str:
        """Have a side effect."""
        self.runs[context.call_id] += 1
        context.publish("begun\n")
        await self._take_time()
        match self.random.randrange(12):
            case 0:
                raise ToolFailure("it did not work out")
            case 1:
                raise RuntimeError("a bug in a tool")
            case _:
                return f"touched {note}"

    async def look(self) -> str:
        """Look around."""
        await self._take_time()
        return self.words()

    async def _take_time(self) -> None:
        await trio.sleep(self.random.choice((0, 0, 0.01, 0.3, 2, 30)))

    def processes_go_on(self) -> None:
        """Let a process that runs say something, or end."""
        running = [one for one in self.executor.workspace.processes if not one.over]
        if running:
            process = self.random.choice(running)
            process.say(self.words().encode())
            if self.random.random() < 0.6:
                process.exits(self.random.choice((0, 1)))

    async def _respond(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        if self.calm:
            for event in answer("calm"):
                yield event
            return
        await trio.sleep(self.random.choice((0, 0.01, 0.2, 3)))
        dice = self.random.random()
        if dice < 0.12:
            if dice < 0.05:
                yield TextDelta(self.words())
            raise self._failure()
        if dice < 0.15:
            yield TextDelta("half a ")
            await trio.sleep_forever()
        for event in answer(self.words(), *self._calls(newest(request))):
            await trio.sleep(self.random.choice((0, 0, 0.05)))
            if isinstance(event, Finish) and dice > 0.98:
                event = Finish("length")
            yield event

    def _failure(self) -> ModelFailure:
        retryable = self.random.random() < 0.7
        after_s = self.random.choice((None, None, 2.0, 4000.0))
        kinds: tuple[ErrorKind, ...] = ("overloaded", "network", "incomplete")
        return ModelFailure(
            self.random.choice(kinds), "it broke", retryable=retryable, retry_after_s=after_s
        )

    def _calls(self, said: Said) -> list[_Call]:
        if self.random.random() < 0.25 + 0.1 * len(said.results):
            return []
        return [self._call(said) for _ in range(self.random.choice((1, 1, 2, 4)))]

    def _call(self, said: Said) -> _Call:
        results = " ".join(said.results)
        agents, commands = _STARTED.findall(results), _COMMAND.findall(results)
        match self.random.randrange(12):
            case 0:
                return "no_such_tool", {"x": 1}
            case 1:
                return "touch", {"wrong": True}
            case 2 | 3:
                return "look", {}
            case 4:
                return "spawn_agent", {"task": self.words()}
            case 5 if agents:
                timeout_s = self.random.choice((1, 100))
                one = self.random.choice(agents)
                return "wait_agent", {"session_id": one, "timeout_s": timeout_s}
            case 6:
                background = self.random.random() < 0.7
                return "exec_command", {"command": "serve", "background": background}
            case 7 if commands:
                return "write_stdin", {"command_id": self.random.choice(commands)}
            case _:
                return "touch", {"note": self.words(2)}
