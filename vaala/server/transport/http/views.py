"""The views under ``/api/v1``: what a server knows, to be read by programs that speak HTTP only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from vaala.discovery import WEBSOCKET_PATH
from vaala.server.transport.head import Head
from vaala.server.transport.http.answer import Answer, error_answer, json_answer
from vaala.server.transport.http.query import Query
from vaala.server.transport.http.site import Handler, Route, Site
from vaala.server.transport.http.static import PAGE, redirect, static_files
from vaala.version import VERSION
from vaala_protocol.errors import NotFound
from vaala_protocol.methods import catalog, conversation, runtime, session
from vaala_protocol.methods.base import Request
from vaala_protocol.pages import ListQuery

API = "/api/v1"
WEB = "/web/v1"


class Views(Protocol):
    """What the views show; `vaala.server.views` fills it from the API of a server."""

    async def read(self, params: Request[Any]) -> object:
        """Answer a method that only looks. Raises `Refused` kinds."""
        ...

    def tools(self) -> object:
        """Return the tools that there are, as they are shown."""
        ...


Make = Callable[[Query, str], Request[Any]]


def make_site(views: Views) -> Site:
    """Return all that there is over HTTP. Blocks for a moment: it reads the page's files."""
    routes = [
        Route("/healthz", "tells that the server works", _health, open=True),
        Route("/", f"leads to {WEB}/", redirect(f"{WEB}/"), open=True),
        Route(WEBSOCKET_PATH, "WebSockets with JSON-RPC 2.0", _upgrade_please, open=True),
        Route(WEB, "a page for people", _page(), below=True, open=True),
        *_views(views),
    ]
    listed = [{"path": route.path, "about": route.about} for route in routes]

    async def index(head: Head, rest: str) -> Answer:
        return json_answer({"version": VERSION, "paths": listed})

    return Site([*routes, Route(API, "lists all of this", index)])


async def _health(head: Head, rest: str) -> Answer:
    return json_answer({"ok": True, "version": VERSION, "protocol": runtime.PROTOCOL_VERSION})


async def _upgrade_please(head: Head, rest: str) -> Answer:
    text = f"{WEBSOCKET_PATH} takes WebSockets: ask for an upgrade"
    return error_answer(426, text, (("Upgrade", "websocket"), ("Connection", "Upgrade")))


def _page() -> Handler:
    """Answer below the page's folder; links in it are relative to its slash."""
    files = static_files(PAGE)
    to_folder = redirect(f"{WEB}/")

    async def handle(head: Head, rest: str) -> Answer:
        return await (files if head.path != WEB else to_folder)(head, rest)

    return handle


def _views(views: Views) -> list[Route]:
    def view(path: str, about: str, make: Make, *known: str, below: bool = True) -> Route:
        async def handle(head: Head, rest: str) -> Answer:
            return json_answer(await views.read(make(Query(head.query, known), rest)))

        return Route(f"{API}/{path}", about, handle, below)

    async def tools(head: Head, rest: str) -> Answer:
        Query(head.query, ())
        return json_answer(views.tools())

    return [
        view("status", "what is alive now", _status, below=False),
        view("models", "models; one by its name", _models),
        view("agents", "agents; one by its name", _agents),
        view("executors", "where agents work; one by its name", _executors),
        Route(f"{API}/tools", "what agents can do", tools),
        view("config", "files of the configuration; one by its name, without secrets", _config),
        view("conversations", "conversations, newest first, or those that query finds; one by its "
             "id; the transcript of one by ID/items", _conversations, *_PAGE, *_LIST, *_ITEMS),
    ]  # fmt: skip


_PAGE = ("cursor", "limit")
_LIST = ("query", "archived", "directory", "tag")
_ITEMS = ("before", "after")


def _status(query: Query, rest: str) -> Request[Any]:
    return runtime.RuntimeStatusParams()


def _models(query: Query, rest: str) -> Request[Any]:
    return catalog.ModelGetParams(name=rest) if rest else catalog.ModelListParams()


def _agents(query: Query, rest: str) -> Request[Any]:
    return catalog.AgentGetParams(name=rest) if rest else catalog.AgentListParams()


def _executors(query: Query, rest: str) -> Request[Any]:
    return catalog.ExecutorGetParams(name=rest) if rest else catalog.ExecutorListParams()


def _config(query: Query, rest: str) -> Request[Any]:
    return catalog.ConfigGetParams(file=rest) if rest else catalog.ConfigListParams()


def _conversations(query: Query, rest: str) -> Request[Any]:
    conversation_id, _, part = rest.partition("/")
    if part == "items":
        return session.SessionItemsParams(
            conversation_id=conversation_id,
            before=query.number("before"),
            after=query.number("after"),
            limit=query.limit(),
        )
    if part:
        raise NotFound(f"a conversation has items, and nothing called {part[:80]!r}")
    if conversation_id:
        return conversation.ConversationGetParams(conversation_id=conversation_id)
    words = query.text("query")
    if words is not None:
        return conversation.ConversationSearchParams(
            text=words, cursor=query.text("cursor"), limit=query.limit()
        )
    wanted = ListQuery(
        archived=query.flag("archived") or False,
        directory=query.text("directory"),
        tag=query.text("tag"),
    )
    return conversation.ConversationListParams(
        query=wanted, cursor=query.text("cursor"), limit=query.limit()
    )
