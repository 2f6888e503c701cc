"""A server of a few lines, for what a real one never does."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import trio

from vaala.client.channel import ChannelClosed
from vaala_protocol.errors import Refused
from vaala_protocol.methods.base import Done
from vaala_protocol.methods.client import ClientEnvironmentParams
from vaala_protocol.methods.runtime import (
    ClientEnvironment,
    ClientInfo,
    InitializeParams,
    InitializeResult,
    ServerInfo,
    WantedVariables,
)
from vaala_protocol.rpc import Answer, Call, server_peer
from vaala_protocol.rpc.incoming import Id

INFO = ServerInfo(
    version="0.1.0", protocol="1.0", instance="one", pid=1, data_directory="/d", started_at=1
)
NOTHING = WantedVariables()
WELCOME = object()


class FakeServer:
    """Answers `InitializeParams` and `ClientEnvironmentParams`; a test decides about all else."""

    def __init__(
        self, *greetings: Refused | None, wanted: WantedVariables = NOTHING, near: bool = True
    ) -> None:
        """``greetings`` are what the first connections get in place of a welcome; None: silence."""
        self.near = near
        self.greetings = list(greetings)
        self.wanted = wanted
        self.clients: list[ClientInfo] = []
        self.told: list[ClientEnvironment | None] = []
        """The environments of clients, in order."""
        self.peer = server_peer()
        self.calls: list[Call] = []
        self.answers: list[Answer] = []
        self.connections = 0
        self.reads = True
        """False: what the client sends stays where it is, until it connects again."""
        self.lives = True
        """False: it answers no ping."""
        self._to_client: trio.MemorySendChannel[bytes | ChannelClosed] | None = None
        self._news = trio.Event()

    @asynccontextmanager
    async def channel(self, *, start: bool) -> AsyncGenerator[FakeServer]:
        self.connections += 1
        self.reads = True
        self.peer = server_peer()
        self._to_client, self._incoming = trio.open_memory_channel[bytes | ChannelClosed](1000)
        await trio.lowlevel.checkpoint()
        yield self

    async def receive(self) -> bytes:
        message = await self._incoming.receive()
        if isinstance(message, ChannelClosed):
            raise message
        return message

    async def send(self, message: bytes) -> None:
        await trio.lowlevel.checkpoint()
        if not self.reads:
            await trio.sleep_forever()
        for incoming in self.peer.receive(message):
            match incoming:
                case Call(id=id, params=InitializeParams() as params):
                    self._greet(id, params)
                case Call(id=id, params=ClientEnvironmentParams(environment=environment)):
                    self.told.append(environment)
                    self.tell(self.peer.answer(id, Done()))
                case Call():
                    self.calls.append(incoming)
                case Answer():
                    self.answers.append(incoming)
                case _:
                    raise AssertionError(incoming)
        self._news.set()
        self._news = trio.Event()

    def _greet(self, id: Id, params: InitializeParams) -> None:
        self.clients.append(params.client)
        self.told.append(params.environment)
        greeting = self.greetings.pop(0) if self.greetings else WELCOME
        if isinstance(greeting, Refused):
            self.tell(self.peer.refuse(id, greeting))
        elif greeting is not None:
            self.tell(self.peer.answer(id, InitializeResult(server=INFO, wanted=self.wanted)))

    async def check(self) -> None:
        await trio.lowlevel.checkpoint()
        if not self.lives:
            await trio.sleep_forever()

    def tell(self, message: bytes | None) -> None:
        assert message is not None
        assert self._to_client is not None
        self._to_client.send_nowait(message)

    def answer(self, result: Any, number: int = -1) -> None:
        self.tell(self.peer.answer(self.calls[number].id, result))

    def close(self, code: int = 1006) -> None:
        assert self._to_client is not None
        self._to_client.send_nowait(ChannelClosed(code, ""))

    async def called(self, count: int = 1) -> None:
        """Wait for so many calls, over all connections."""
        while len(self.calls) < count:
            await self._news.wait()
