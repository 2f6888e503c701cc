"""What a client offers, as the runtime uses it: each use is a request over the connection.

Deadlines, and the end of an offer while it is in use, are kept by `vaala.services`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vaala.server.asking import Asking
from vaala.services.base import (
    ClientFiles,
    ClientTerminals,
    ClientTools,
    Elicitor,
    Offer,
    TerminalCommand,
)
from vaala_protocol.methods import client as wire


def offer_of(client: str, params: wire.ClientOfferParams, asking: Asking) -> Offer:
    """Return what the parameters offer, served by ``asking``."""
    conversation_id = params.conversation_id
    files = params.files
    return Offer(
        client=client,
        files=None if files is None else _Files(asking, conversation_id),
        reads=files is not None and files.read,
        writes=files is not None and files.write,
        terminals=_Terminals(asking, conversation_id) if params.terminal else None,
        tools=_Tools(asking, conversation_id, params.tools) if params.tools else None,
        elicitor=_Elicitor(asking, conversation_id) if params.elicitation else None,
    )


class _Files(ClientFiles):
    def __init__(self, asking: Asking, conversation_id: str) -> None:
        self._asking = asking
        self._id = conversation_id

    async def read(self, path: str) -> str:
        read = wire.FileReadParams(conversation_id=self._id, path=path)
        return (await self._asking.ask(read)).text

    async def write(self, path: str, text: str) -> None:
        await self._asking.ask(wire.FileWriteParams(conversation_id=self._id, path=path, text=text))


class _Terminals(ClientTerminals):
    def __init__(self, asking: Asking, conversation_id: str) -> None:
        self._asking = asking
        self._id = conversation_id

    async def start(self, command: TerminalCommand) -> str:
        start = wire.TerminalStartParams(
            conversation_id=self._id,
            command=command.command,
            arguments=command.arguments,
            directory=command.directory,
            environment=dict(command.environment),
        )
        return (await self._asking.ask(start)).terminal_id

    async def output(self, terminal_id: str) -> wire.TerminalOutputResult:
        return await self._asking.ask(wire.TerminalOutputParams(terminal_id=terminal_id))

    async def end(self, terminal_id: str) -> wire.TerminalExit:
        return await self._asking.ask(wire.TerminalEndParams(terminal_id=terminal_id))


class _Tools(ClientTools):
    def __init__(
        self, asking: Asking, conversation_id: str, offered: Sequence[wire.OfferedTool]
    ) -> None:
        self._asking = asking
        self._id = conversation_id
        self._offered = offered

    @property
    def offered(self) -> Sequence[wire.OfferedTool]:
        return self._offered

    async def run(self, call_id: str, name: str, arguments: dict[str, Any]) -> wire.ToolRunResult:
        return await self._asking.ask(
            wire.ToolRunParams(
                conversation_id=self._id, call_id=call_id, name=name, arguments=arguments
            )
        )


class _Elicitor(Elicitor):
    def __init__(self, asking: Asking, conversation_id: str) -> None:
        self._asking = asking
        self._id = conversation_id

    async def elicit(self, question_id: str, text: str, choices: Sequence[str]) -> str | None:
        question = wire.ElicitParams(
            conversation_id=self._id, question_id=question_id, text=text, choices=tuple(choices)
        )
        return (await self._asking.ask(question)).answer
