"""`OwnOffer`: what this program does for a conversation, and `OwnOffers`, all that it has offered.

An offer belongs to one connection on the server's side; here it is made again on each new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from vaala.client.terminals import LiveTerminals, Terminal, Terminals, end_terminals
from vaala_protocol.content import TextContent
from vaala_protocol.errors import NotFound
from vaala_protocol.methods import client as wire
from vaala_protocol.methods.base import Done, Request


class Files(Protocol):
    """Text files of this machine as the person sees them. Paths are absolute.

    Raise `NotFound` for a file that is not there, `BadRequest` for one that cannot be had.
    """

    async def read(self, path: str) -> str: ...

    async def write(self, path: str, text: str) -> None:
        """Replace a file, or make it."""
        ...


class ClientTool(Struct, frozen=True):
    """A tool that runs here; ``run`` gets the arguments as the model gave them.

    They are checked against ``offered.parameters`` before. What it raises becomes an error result.
    """

    offered: wire.OfferedTool
    run: Callable[[dict[str, Any]], Awaitable[str | wire.ToolRunResult]]


Elicit: TypeAlias = Callable[[wire.ElicitParams], Awaitable[str | None]]
"""Puts a question to the person; None: they do not want to answer."""


class OwnOffer(Struct, frozen=True):
    """What is offered for one conversation."""

    conversation_id: str
    files: Files | None = None
    terminal: Terminals | None = None
    tools: tuple[ClientTool, ...] = ()
    elicitation: Elicit | None = None

    def params(self) -> wire.ClientOfferParams:
        return wire.ClientOfferParams(
            conversation_id=self.conversation_id,
            files=None if self.files is None else wire.OfferedFiles(),
            terminal=self.terminal is not None,
            tools=tuple(tool.offered for tool in self.tools),
            elicitation=self.elicitation is not None,
        )


class OwnOffers:
    """Finds who does what the server asks for. At most one offer for each conversation."""

    def __init__(self) -> None:
        self._offers: dict[str, OwnOffer] = {}
        self._terminals = LiveTerminals()

    def add(self, offer: OwnOffer) -> None:
        """Raises ``ValueError`` when there is one for that conversation."""
        if offer.conversation_id in self._offers:
            raise ValueError(f"this client has an offer for {offer.conversation_id} already")
        self._offers[offer.conversation_id] = offer

    def remove(self, offer: OwnOffer) -> list[Terminal]:
        """Take one out; its terminals are for the caller to end."""
        del self._offers[offer.conversation_id]
        return self._terminals.take_all(offer.conversation_id)

    def disconnected(self) -> list[Terminal]:
        """The server knows no terminals any more: all there are are for the caller to end."""
        return self._terminals.take_all()

    async def serve(self, params: Request[Any]) -> object:
        """Do what the server asks for. Raises `NotFound` for what is not offered (any more)."""
        match params:
            case wire.FileReadParams(conversation_id=id, path=path):
                return wire.FileReadResult(text=await self._files(id).read(path))
            case wire.FileWriteParams(conversation_id=id, path=path, text=text):
                await self._files(id).write(path, text)
                return Done()
            case wire.ToolRunParams():
                return await self._run_tool(params)
            case wire.ElicitParams():
                elicit = self._of(params.conversation_id).elicitation
                if elicit is None:
                    raise NotFound("questions are not put to the person here")
                return wire.ElicitResult(answer=await elicit(params))
            case wire.TerminalStartParams():
                return await self._start_terminal(params)
            case wire.TerminalOutputParams(terminal_id=terminal_id):
                terminal = self._terminals.get(terminal_id)
                return await terminal.terminals.output(terminal.theirs)
            case wire.TerminalEndParams(terminal_id=terminal_id):
                terminal = self._terminals.take(terminal_id)
                return await terminal.terminals.end(terminal.theirs)
            case _:
                raise NotFound(f"{params.method} is not offered")

    async def _run_tool(self, params: wire.ToolRunParams) -> wire.ToolRunResult:
        for tool in self._of(params.conversation_id).tools:
            if tool.offered.name == params.name:
                break
        else:
            raise NotFound(f"no tool {params.name!r} is offered")
        try:
            said = await tool.run(params.arguments)
        except Exception as error:
            return _result(f"{type(error).__name__}: {error}", is_error=True)
        return _result(said) if isinstance(said, str) else said

    async def _start_terminal(self, params: wire.TerminalStartParams) -> wire.TerminalStartResult:
        id = params.conversation_id
        offer = self._of(id)
        if offer.terminal is None:
            raise NotFound("commands do not run in a terminal here")
        self._terminals.check_room()
        theirs = await offer.terminal.start(
            params.command,
            params.arguments,
            directory=params.directory,
            environment=params.environment,
        )
        terminal = Terminal(id, offer.terminal, theirs)
        if self._offers.get(id) is not offer:
            await end_terminals([terminal])
            raise NotFound(f"nothing is offered for conversation {id} any more")
        return wire.TerminalStartResult(terminal_id=self._terminals.add(terminal))

    def _of(self, conversation_id: str) -> OwnOffer:
        if conversation_id not in self._offers:
            raise NotFound(f"nothing is offered for conversation {conversation_id}")
        return self._offers[conversation_id]

    def _files(self, conversation_id: str) -> Files:
        files = self._of(conversation_id).files
        if files is None:
            raise NotFound("files are not served here")
        return files


def _result(text: str, *, is_error: bool = False) -> wire.ToolRunResult:
    return wire.ToolRunResult(content=(TextContent(text=text),), is_error=is_error)
