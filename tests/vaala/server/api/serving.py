"""A server in memory, and clients that speak the protocol with it over memory wires."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import trio
import trio.testing

import vaala
from tests.vaala.runtime.fake_executor import FakeExecutor
from tests.vaala.server.memory_wires import BUFFER_BYTES, memory_wires
from vaala.models.base import Model, Models
from vaala.models.catalogue.facts import Known
from vaala.models.scripted.demo import DEMO
from vaala.models.scripted.model import ScriptedModel
from vaala.models.secret import Secret
from vaala.runtime import Runtime
from vaala.server import limits
from vaala.server.api import Api
from vaala.server.connection import serve_connection
from vaala.server.wire import PeerInfo, Wire, WireClosed
from vaala.testing.projection import Projection
from vaala_executors.workspace import Executor
from vaala_protocol.content import TextContent
from vaala_protocol.errors import NotFound, Refused, Stopping, UnknownMethod
from vaala_protocol.events import ItemChanged, TurnChanged
from vaala_protocol.ids import new_id
from vaala_protocol.items import Item
from vaala_protocol.methods.base import Notification, Request
from vaala_protocol.methods.catalog import ConfigListResult, ModelInfo, ModelListResult
from vaala_protocol.methods.client import ClientCancelNotification
from vaala_protocol.methods.conversation import (
    ConversationCreateParams,
    ConversationSubscribeParams,
    EventNotification,
    Position,
    ResyncNotification,
)
from vaala_protocol.methods.runtime import (
    ClientEnvironment,
    ClientInfo,
    ConfigProblem,
    InitializeParams,
    InitializeResult,
    ReloadResult,
    ServerInfo,
    WantedVariables,
)
from vaala_protocol.methods.session import SessionSendParams
from vaala_protocol.rpc import Answer, Call, Note, client_peer
from vaala_protocol.settings import Mode, Settings
from vaala_protocol.state import InputInfo, Snapshot

R = TypeVar("R")

LOCAL = PeerInfo("memory", local=True)
Serve = Callable[[Any], Awaitable[Any]]


async def _nothing() -> None:
    pass


class FakeKeeper:
    """A configuration that a test sets; ``before`` runs in front of each use of it."""

    def __init__(self) -> None:
        self.before: Callable[[], Awaitable[None]] = _nothing
        self.generation = 1
        self.problems: tuple[ConfigProblem, ...] = ()
        self.wanted = WantedVariables()
        self.facts: dict[str, Known] = {}
        self.values: dict[tuple[str, tuple[str | int, ...]], Any] = {}

    async def reload(self) -> ReloadResult:
        await self.before()
        if not self.problems:
            self.generation += 1
        return ReloadResult(generation=self.generation, problems=self.problems)

    async def refresh(self) -> None:
        await trio.lowlevel.checkpoint()

    async def list(self) -> ConfigListResult:
        await self.before()
        return ConfigListResult(
            directory="/config", files=(), generation=self.generation, problems=self.problems
        )

    async def get(self, file: str, key: tuple[str | int, ...]) -> Any:
        await self.before()
        if (file, key) not in self.values:
            raise NotFound(f"nothing at {key} in {file}")
        return self.values[file, key]

    async def set(self, file: str, key: tuple[str | int, ...], value: Any) -> ReloadResult:
        await self.before()
        self.values[file, key] = value
        return await self.reload()

    async def models(self, keys: Mapping[str, str]) -> ModelListResult:
        await self.before()
        return ModelListResult(
            models=(ModelInfo(name="scripted", provider="scripted"),), default="scripted"
        )

    async def model_info(self, name: str, keys: Mapping[str, str]) -> ModelInfo:
        found = {one.name: one for one in (await self.models(keys)).models}
        if name not in found:
            raise NotFound(f"no model {name!r}")
        return found[name]

    def known(self, name: str, keys: Mapping[str, str]) -> Known:
        return self.facts.get(name, Known())

    async def model(self, name: str | None, keys: Mapping[str, str]) -> tuple[Model, str]:
        await self.before()
        return ScriptedModel(DEMO), "model scripted: the only one"


class Client:
    """One connection of a client; notifications are kept in order of their arrival."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.heard: list[Any] = []
        self.raw: list[bytes | str] = []
        self.serves: dict[type[Request[Any]], Serve] = {}
        self.cancelled: list[int] = []
        self.closed: WireClosed | None = None
        self.greeting: InitializeResult | None = None
        self._peer = client_peer()
        self._answers: dict[int, tuple[trio.Event, list[Answer]]] = {}
        self._news = trio.Event()
        self._reading = trio.Event()
        self._reading.set()

    async def call(self, params: Request[R]) -> R:
        """Ask the server; raises what it refused with, `Stopping` when the wire has closed."""
        result: R = await self.answer_of(await self.begin(params))
        return result

    async def begin(self, params: Request[Any]) -> int:
        id, message = self._peer.ask(params)
        self._answers[id] = (trio.Event(), [])
        await self.wire.send(message)
        return id

    async def answer_of(self, id: int) -> Any:
        settled, answers = self._answers[id]
        await settled.wait()
        if not answers:
            raise Stopping("the wire has closed")
        del self._answers[id]
        if answers[0].error is not None:
            raise answers[0].error
        return answers[0].result

    async def hear(self, found: Callable[[Any], Any]) -> Any:
        """Return the first notification, of all that came and come, that fits."""
        looked = 0
        while True:
            for note in self.heard[looked:]:
                if found(note):
                    return note
            looked = len(self.heard)
            await self._news.wait()

    def stop_reading(self) -> None:
        self._reading = trio.Event()

    def read_on(self) -> None:
        self._reading.set()

    async def run(self, nursery: trio.Nursery) -> None:
        try:
            while True:
                await self._reading.wait()
                message = await self.wire.receive()
                self.raw.append(message)
                for incoming in self._peer.receive(message):
                    match incoming:
                        case Answer():
                            settled, answers = self._answers[incoming.id]
                            answers.append(incoming)
                            settled.set()
                        case Call():
                            nursery.start_soon(self._serve, incoming)
                        case Note(params=ClientCancelNotification(request_id=request_id)):
                            self.cancelled.append(request_id)
                        case Note(params=Notification() as note):
                            self.heard.append(note)
                            self._news.set()
                            self._news = trio.Event()
                        case _:
                            raise AssertionError(f"unexpected: {incoming}")
        except WireClosed as closed:
            self.closed = closed
            for settled, _ in self._answers.values():
                settled.set()

    async def _serve(self, call: Call) -> None:
        try:
            if type(call.params) not in self.serves:
                raise UnknownMethod(call.method)
            answer = self._peer.answer(call.id, await self.serves[type(call.params)](call.params))
        except Refused as refused:
            answer = self._peer.refuse(call.id, refused)
        assert answer is not None
        with suppress(WireClosed):
            await self.wire.send(answer)

    async def create(self, mode: Mode = "full") -> str:
        made = await self.call(
            ConversationCreateParams(directory="/w", settings=Settings(mode=mode))
        )
        return made.id

    async def send(self, conversation_id: str, text: str, **fields: Any) -> InputInfo:
        fields.setdefault("client_id", new_id())
        return await self.call(
            SessionSendParams(
                conversation_id=conversation_id, content=(TextContent(text=text),), **fields
            )
        )

    async def watch(self, conversation_id: str, after: Position | None = None) -> Snapshot | None:
        result = await self.call(
            ConversationSubscribeParams(conversation_id=conversation_id, after=after)
        )
        return result.snapshot


class Server:
    """``problems`` are what left a connection; a test that ends well has none."""

    def __init__(
        self, api: Api, nursery: trio.Nursery, stopped: list[str], learned: list[Secret]
    ) -> None:
        self.api = api
        self.nursery = nursery
        self.stopped = stopped
        self.learned = learned
        """What no log is to show."""

    @property
    def runtime(self) -> Runtime:
        return self.api.runtime

    @property
    def keeper(self) -> FakeKeeper:
        keeper = self.api.config
        assert isinstance(keeper, FakeKeeper)
        return keeper

    @asynccontextmanager
    async def wire(
        self, *, peer: PeerInfo = LOCAL, buffer_bytes: int = BUFFER_BYTES
    ) -> AsyncGenerator[Wire]:
        """The client's end of a connection that is served; it has gone when the block ends."""
        theirs, ours = memory_wires(buffer_bytes)
        done = trio.Event()

        async def serve() -> None:
            try:
                await serve_connection(self.api, ours, peer)
            finally:
                done.set()

        self.nursery.start_soon(serve)
        try:
            yield theirs
        finally:
            theirs.abort()
            with trio.CancelScope(shield=True):
                await done.wait()

    @asynccontextmanager
    async def client(
        self,
        name: str = "test",
        *,
        version: str = "0.1.0",
        library: str = "",
        environment: ClientEnvironment | None = None,
        peer: PeerInfo = LOCAL,
        buffer_bytes: int = BUFFER_BYTES,
    ) -> AsyncGenerator[Client]:
        """A client that has said who it is."""
        async with (
            self.wire(peer=peer, buffer_bytes=buffer_bytes) as wire,
            trio.open_nursery() as nursery,
        ):
            client = Client(wire)
            nursery.start_soon(client.run, nursery)
            info = ClientInfo(name=name, version=version, library=library)
            client.greeting = await client.call(
                InitializeParams(client=info, environment=environment)
            )
            yield client
            nursery.cancel_scope.cancel()


@asynccontextmanager
async def server(
    model: Model | Sequence[Model] | Models = (), *, auto_started: bool = False, **options: Any
) -> AsyncGenerator[Server]:
    """A server over a runtime in memory; ``options`` are those of `open_runtime`."""
    stopped: list[str] = []
    info = ServerInfo(
        version="0.1.0", protocol="1.0", instance="run-1", pid=1, data_directory="/data",
        started_at=1, auto_started=auto_started,
    )  # fmt: skip
    async with (
        vaala.open_runtime(models=model, **options) as runtime,
        trio.open_nursery() as nursery,
    ):
        learned: list[Secret] = []
        api = Api(
            runtime, FakeKeeper(), info,
            address="memory", shutdown=stopped.append, learn=learned.extend,
        )  # fmt: skip
        yield Server(api, nursery, stopped, learned)
        nursery.cancel_scope.cancel()


def is_event(kind: type[Any], **fields: Any) -> Callable[[Any], bool]:
    """Fits the notification of an event of this kind with these fields."""

    def fits(note: Any) -> bool:
        if not isinstance(note, EventNotification) or not isinstance(note.frame.event, kind):
            return False
        event = note.frame.event
        return all(getattr(event, name) == value for name, value in fields.items())

    return fits


def updates(client: Client, conversation_id: str) -> list[Any]:
    """Return the frames and snapshots that came for a conversation, in order."""
    found: list[Any] = []
    for note in client.heard:
        match note:
            case EventNotification(conversation_id=one, frame=frame) if one == conversation_id:
                found.append(frame)
            case ResyncNotification(conversation_id=one, snapshot=shot) if one == conversation_id:
                found.append(shot)
            case _:
                pass
    return found


def is_turn(state: str) -> Callable[[Any], bool]:
    def fits(note: Any) -> bool:
        return is_event(TurnChanged)(note) and note.frame.event.turn.state == state

    return fits


def is_item(kind: type[Item], **fields: Any) -> Callable[[Any], bool]:
    """Fits the notification of an item (not a live one) of this kind with these fields."""

    def fits(note: Any) -> bool:
        if not is_event(ItemChanged, live=False)(note):
            return False
        item = note.frame.event.item
        return isinstance(item, kind) and all(getattr(item, k) == v for k, v in fields.items())

    return fits


async def settled() -> None:
    """Let everything happen that is due, and what the clients are told of it."""
    await trio.testing.wait_all_tasks_blocked()
    await trio.sleep(limits.EVENTS_PERIOD_S)
    await trio.testing.wait_all_tasks_blocked()


def state_of(client: Client, conversation_id: str, first: Snapshot) -> Snapshot:
    """Return what a client knows of a conversation; raises `Gap` for a hole in it."""
    projection = Projection()
    projection.apply(first)
    for update in updates(client, conversation_id):
        projection.apply(update)
    return projection.state


def machine() -> dict[str, Executor]:
    """The executors of a runtime that touches nothing of this machine."""
    return {"local": FakeExecutor()}
