"""An actor for tests: it waits, refuses, crashes and keeps a journal as it is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import trio

from vaala.actor import Actor, Command
from vaala_protocol.errors import BadRequest


@dataclass(frozen=True)
class Say(Command[str]):
    text: str


@dataclass(frozen=True)
class Work(Command[str]):
    """Answered after some seconds."""

    text: str
    seconds: float


@dataclass(frozen=True)
class Fail(Command[None]):
    error: BaseException


@dataclass(frozen=True)
class Ask(Command[Any]):
    """Ask another actor while this one is handled."""

    actor: Actor
    command: Command[Any]


@dataclass(frozen=True)
class Start(Command[None]):
    """Start a child task."""

    task: Callable[[], Awaitable[object]]


class Echo(Actor):
    """Its journal tells, in order, what it did; ``said`` is what it has "written down"."""

    def __init__(self, name: str = "echo") -> None:
        super().__init__()
        self.name = name
        self.journal: list[str] = []
        self.said: list[str] = []
        self.asked_to_close = 0
        self.first_child: Callable[[], Awaitable[object]] | None = None
        self.opening: Callable[[], Awaitable[object]] | None = None

    def __str__(self) -> str:
        return self.name

    async def opened(self) -> None:
        if self.first_child is not None:
            self.spawn(self.first_child)
        if self.opening is not None:
            await self.opening()
        self.journal.append("opened")

    async def closing(self) -> None:
        self.journal.append("closing")
        self.asked_to_close += 1
        self.children.cancel_scope.cancel()

    async def handle(self, command: Any) -> Any:
        match command:
            case Say(text=text):
                self.said.append(text)
                return text
            case Work(text=text, seconds=seconds):
                self.journal.append(f"begins {text}")
                await trio.sleep(seconds)
                self.said.append(text)
                return text
            case Fail(error=error):
                raise error
            case Ask(actor=actor, command=inner):
                return await actor.ask(inner)
            case Start(task=task):
                self.spawn(task)
                return None
            case _:
                raise BadRequest(f"{command!r}")
