"""`Client`: what a program asks of a server, over as many connections as that takes."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import trio
from msgspec.structs import replace

from vaala.client import limits
from vaala.client.connector import Connector
from vaala.client.conversation import RemoteConversation
from vaala.client.errors import Disconnected
from vaala.client.finder import Finder
from vaala.client.link import Link
from vaala.client.offering import Offering
from vaala.client.offers import ClientTool, Elicit, Files, OwnOffer, OwnOffers
from vaala.client.reader import Reader
from vaala.client.retry import can_repeat
from vaala.client.terminals import Terminals
from vaala.client.watch import AllConversations, OneConversation, Watch
from vaala_protocol.base import Malformed, Value
from vaala_protocol.errors import Incompatible, NotFound, Outdated, TimedOut
from vaala_protocol.events import Frame
from vaala_protocol.ids import new_id
from vaala_protocol.methods import conversation, runtime
from vaala_protocol.methods.base import Notification, Request
from vaala_protocol.methods.client import ClientEnvironmentParams
from vaala_protocol.methods.runtime import (
    ClientEnvironment,
    ClientInfo,
    InitializeParams,
    NoticeNotification,
    RuntimeFrame,
    RuntimeSnapshot,
    RuntimeStatusResult,
    ServerInfo,
    WantedVariables,
)
from vaala_protocol.pages import ConversationPage, ConversationRow, ListQuery, SearchPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import Snapshot

log = logging.getLogger(__name__)

R = TypeVar("R", bound=Value)

_EVERYTHING = ListQuery()
_SCRIPT = "scripted:"
"""Begins the name of a model that is a file of this machine."""


class Client:
    """Made by `vaala.client.connect`. Methods raise `Refused` kinds and `Disconnected`.

    A request that a broken connection leaves open is asked again when doing it twice is doing it
    once (`vaala.client.retry.can_repeat`); else `Disconnected` says that nobody knows.
    """

    def __init__(
        self,
        nursery: trio.Nursery,
        finder: Finder,
        info: ClientInfo,
        environment: Callable[[WantedVariables], ClientEnvironment],
        *,
        start: bool,
        on_notice: Callable[[str], None],
    ) -> None:
        self._nursery = nursery
        self._info = info
        self._environment = environment
        self._wanted = WantedVariables()
        """What the server of the newest connection wants to be told besides what it always is."""
        self._told: ClientEnvironment | None = None
        self._near = True
        """The server of the newest connection is on this machine: only such a one is told what
        there is here, and takes it."""
        self._may_start = start
        self._on_notice = on_notice
        self._server: ServerInfo | None = None
        self._offers = OwnOffers()
        self._watches: dict[str, Watch[Snapshot, Frame]] = {}
        self._all: Watch[RuntimeSnapshot, RuntimeFrame] | None = None
        self.connector = Connector(finder, self, start=start)
        self._offering = Offering(self._offers, self.connector.link, nursery)

    @property
    def server(self) -> ServerInfo:
        """The server of the newest connection."""
        assert self._server is not None, "a client is connected before it is given out"
        return self._server

    async def ask(self, params: Request[R], *, timeout_s: float = limits.REQUEST_S) -> R:
        """Ask the server for anything of the protocol and return its answer.

        Raises what the server refused with, `Disconnected`, `TimedOut`, and `Malformed` for an
        answer of another shape. Cancel: the request may be done all the same.
        """
        with trio.move_on_after(timeout_s):
            while True:
                link = await self.connector.link()
                try:
                    return await link.ask(params, timeout_s=timeout_s)
                except Disconnected as error:
                    if not error.outcome_known and not can_repeat(params):
                        raise
        raise TimedOut(f"{params.method} was not answered within {timeout_s:g} s")

    def conversation(self, conversation_id: str) -> RemoteConversation:
        """Return a conversation by its id, without asking whether there is one."""
        return RemoteConversation(self, conversation_id)

    async def create_conversation(
        self,
        *,
        directory: str = ".",
        executor: str = "local",
        agent: str = "default",
        settings: Settings | None = None,
        title: str = "",
        ephemeral: bool = False,
        client_id: str | None = None,
    ) -> RemoteConversation:
        """Make a conversation; see `vaala.interface.Conversations`.

        A relative ``directory`` begins at the one of this client, and a relative ``scripted:PATH``.
        """
        info = await self.ask(
            conversation.ConversationCreateParams(
                directory=self.absolute(directory) if executor == "local" else directory,
                executor=executor,
                agent=agent,
                settings=self.settings_here(settings or Settings()),
                title=title,
                ephemeral=ephemeral,
                client_id=client_id or new_id(),
            )
        )
        return RemoteConversation(self, info.id)

    async def open_conversation(self, conversation_id: str) -> RemoteConversation:
        """Return a conversation that is there; raises `NotFound`."""
        await self.ask(conversation.ConversationGetParams(conversation_id=conversation_id))
        return RemoteConversation(self, conversation_id)

    async def delete_conversation(self, conversation_id: str) -> None:
        """End what runs in a conversation and delete it for good. Raises `NotFound`."""
        await self.ask(conversation.ConversationDeleteParams(conversation_id=conversation_id))

    async def fork_conversation(
        self, conversation_id: str, turn_id: str | None = None
    ) -> RemoteConversation:
        params = conversation.ConversationForkParams(
            conversation_id=conversation_id, turn_id=turn_id
        )
        return RemoteConversation(self, (await self.ask(params)).id)

    async def import_conversation(self, path: str) -> RemoteConversation:
        params = conversation.ConversationImportParams(path=self.absolute(path))
        return RemoteConversation(self, (await self.ask(params, timeout_s=limits.TRANSFER_S)).id)

    async def export_conversation(self, conversation_id: str, path: str) -> int:
        params = conversation.ConversationExportParams(
            conversation_id=conversation_id, path=self.absolute(path)
        )
        return (await self.ask(params, timeout_s=limits.TRANSFER_S)).size_bytes

    async def list(
        self, query: ListQuery = _EVERYTHING, cursor: str | None = None, limit: int = 50
    ) -> ConversationPage:
        """Return a page of conversations."""
        return await self.ask(
            conversation.ConversationListParams(query=query, cursor=cursor, limit=limit)
        )

    async def search(self, text: str, cursor: str | None = None, limit: int = 20) -> SearchPage:
        """Return the titles and messages that hold every word of ``text``, best first."""
        return await self.ask(
            conversation.ConversationSearchParams(text=text, cursor=cursor, limit=limit)
        )

    async def get(self, conversation_id: str) -> ConversationRow | None:
        """Return a conversation as lists show it, None when there is no such."""
        params = conversation.ConversationGetParams(conversation_id=conversation_id)
        try:
            return await self.ask(params)
        except NotFound:
            return None

    async def status(self) -> RuntimeStatusResult:
        """Return what is alive in the server now."""
        return await self.ask(runtime.RuntimeStatusParams())

    async def shutdown(self, *, only_if_idle: bool = False, reason: str = "") -> None:
        """Stop the server; it is not started again by this client. Raises `Busy`."""
        await self.ask(runtime.ShutdownParams(only_if_idle=only_if_idle, reason=reason))

    @asynccontextmanager
    async def watch_conversation(
        self, conversation_id: str, *, from_now: bool = False
    ) -> AsyncGenerator[Reader[Snapshot, Frame]]:
        """See `RemoteConversation.subscribe`, and `Watch.reader`."""

        def over() -> None:
            del self._watches[conversation_id]

        known = self._watches.get(conversation_id)
        watch = known or Watch(OneConversation(conversation_id), self.connector.link)
        with watch.reader(from_now=from_now) as reader:
            if known is None:
                self._watches[conversation_id] = watch
                self._nursery.start_soon(watch.run, over)
            await reader.ready()
            yield reader

    @asynccontextmanager
    async def subscribe(self) -> AsyncGenerator[Reader[RuntimeSnapshot, RuntimeFrame]]:
        """Watch all conversations at once: a `RuntimeSnapshot` first, then each `RuntimeFrame`.

        It outlives connections and servers; a snapshot begins each.
        """
        known = self._all
        watch = known or Watch(AllConversations(), self.connector.link)
        with watch.reader() as reader:
            if known is None:
                self._all = watch
                self._nursery.start_soon(watch.run, self._forget_all)
            await reader.ready()
            yield reader

    @asynccontextmanager
    async def offer(
        self,
        conversation_id: str,
        *,
        files: Files | None = None,
        terminal: Terminals | None = None,
        tools: Sequence[ClientTool] = (),
        elicitation: Elicit | None = None,
    ) -> AsyncGenerator[None]:
        """Serve a conversation while the block runs, over all connections.

        Raises ``ValueError`` when this client has an offer for it already, and what the server
        refuses it with. On leaving it is taken back, requests in flight are given up and terminals
        are ended.
        """
        offer = OwnOffer(conversation_id, files, terminal, tuple(tools), elicitation)
        async with self._offering.hold(offer):
            yield

    def new_environment(self) -> ClientEnvironment | None:
        """Return the environment of this client when it is another one than the server knows.

        Call `environment_told` once the server has it.
        """
        if not self._near:
            return None
        environment = self._environment(self._wanted)
        return None if environment == self._told else environment

    def environment_told(self, environment: ClientEnvironment | None) -> None:
        """The server has taken what `new_environment` has returned."""
        self._told = environment or self._told

    def absolute(self, path: str) -> str:
        """Return a path of this machine from the directory of this client."""
        return os.path.abspath(os.path.join(self._environment(self._wanted).directory, path))

    def model_here(self, name: str) -> str:
        """Return the name of a model for the server: a relative path in ``scripted:PATH`` begins
        at the directory of this client, and not at the server's."""
        path = name.removeprefix(_SCRIPT)
        return f"{_SCRIPT}{self.absolute(path)}" if path and path != name else name

    def settings_here(self, settings: Settings) -> Settings:
        """Return settings whose model is `model_here`."""
        model = settings.model
        return settings if model is None else replace(settings, model=self.model_here(model))

    async def greet(self, link: Link) -> None:
        """See `vaala.client.connector.Guest`."""
        self._near = link.near
        environment = self._environment(self._wanted) if link.near else None
        params = InitializeParams(client=self._info, environment=environment)
        try:
            result = await link.ask(params, timeout_s=limits.GREET_S)
        except Outdated as error:
            if not self._may_start:
                raise
            raise Disconnected(f"an older server makes room: {error}") from error
        except Malformed as error:
            raise Incompatible(f"the server greets in a way that is not known: {error}") from error
        self._told = environment
        self._wanted = result.wanted
        if (more := self.new_environment()) is not None:
            await link.ask(ClientEnvironmentParams(environment=more), timeout_s=limits.GREET_S)
            self.environment_told(more)
        self._server = result.server
        for notice in result.notices:
            self._on_notice(notice)

    def connected(self, link: Link) -> None:
        """See `vaala.client.connector.Guest`."""
        self._offering.renew(link)

    def disconnected(self, why: str) -> None:
        """See `vaala.client.connector.Guest`."""
        log.debug("disconnected: %s", why)
        self._offering.disconnected()
        for watch in self._watches.values():
            watch.wake()
        if self._all is not None:
            self._all.wake()

    def hear(self, note: Notification) -> None:
        """See `vaala.client.connector.Guest`."""
        match note:
            case conversation.EventNotification(conversation_id=id, frame=frame):
                if id in self._watches:
                    self._watches[id].hear_frame(frame)
            case conversation.ResyncNotification(conversation_id=id, snapshot=snapshot):
                if id in self._watches:
                    self._watches[id].hear_snapshot(snapshot)
            case conversation.ClosedNotification(conversation_id=id, reason=reason):
                if id in self._watches:
                    self._watches[id].hear_end(reason)
            case runtime.RuntimeEventNotification(frame=frame):
                if self._all is not None:
                    self._all.hear_frame(frame)
            case runtime.RuntimeResyncNotification(snapshot=snapshot):
                if self._all is not None:
                    self._all.hear_snapshot(snapshot)
            case NoticeNotification(text=text):
                self._on_notice(text)
            case _:
                log.debug("%s is of no use here", note.method)

    async def serve(self, params: Request[Any]) -> object:
        """See `vaala.client.connector.Guest`."""
        return await self._offers.serve(params)

    def _forget_all(self) -> None:
        self._all = None
