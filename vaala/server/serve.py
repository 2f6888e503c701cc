"""`serve`: the whole life of a server.

What is opened is nested, so that the end is the beginning backwards: the record that leads clients
here goes first, then the listeners with their connections, then what runs, and the lock of the
data directory last.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import trio

from vaala.config.keeper import Keeper, open_keeper
from vaala.config.settings import ServerSettings
from vaala.dao.store import Store, open_store
from vaala.dao.times import now_ms
from vaala.discovery import ServerRecord, new_token, place_of, remove_record, write_record
from vaala.discovery.environment import INTERPRETER_VARIABLES
from vaala.models.secret import Secret
from vaala.observer import Gauge
from vaala.package import UPGRADED, Upgraded
from vaala.paths import config_directory, state_directory
from vaala.runtime import Runtime
from vaala.server import limits
from vaala.server.api import Api
from vaala.server.api.memory import resident_bytes
from vaala.server.connection import serve_connection
from vaala.server.errors import CannotPublish, DataUnusable
from vaala.server.give_back import collect_and_trim, give_back_memory
from vaala.server.idle import exit_when_idle
from vaala.server.settings import ServeSettings
from vaala.server.stopping import Stop, watch_place
from vaala.server.transport.accepting import accept
from vaala.server.transport.front_door import FrontDoor
from vaala.server.transport.guard import Guard, hosts_of
from vaala.server.transport.listening import Listening, listen
from vaala.server.transport.refusal import Refusal
from vaala.server.wire import PeerInfo, Wire
from vaala.server.wiring import open_user_runtime
from vaala.telemetry.logs import Logs, open_logs
from vaala.telemetry.redact import Redactor, secrets_of
from vaala.tools.builtin import builtin_tools
from vaala.version import VERSION
from vaala_protocol.methods.runtime import PROTOCOL_VERSION, ServerInfo

if TYPE_CHECKING:
    from vaala.server.transport.http.site import Site

log = logging.getLogger(__name__)

_OF_THE_SITE: Final = ("vaala.server.transport.http.views", "vaala.server.views")
LAST_ANSWERS_S: Final = 0.1
"""Between the wish to end and the end of connections: what was just asked is answered in it."""


async def serve(
    settings: ServeSettings,
    environ: Mapping[str, str],
    stop: Stop,
    ready: Callable[[ServerRecord], None],
) -> None:
    """Serve a data directory until ``stop`` is asked for; return when everything has ended.

    ``ready`` is called when connections are accepted and the record is in its place. In the end
    clients are told (close code 1001), running turns are interrupted and written down, and
    commands are ended, each within its limit. Raises `CannotServe`, `ConfigError` and
    `StoreLocked`, and then leaves nothing behind. Cancel: ends the same way.
    """
    token = new_token()
    redactor = Redactor([Secret(token), *secrets_of(environ)])
    with (
        open_logs(state_directory(environ) / "vaala.log", redactor=redactor) as logs,
        stop.start(),
    ):
        # Those of the client that started the server are nobody else's.
        foreign = INTERPRETER_VARIABLES if settings.auto_started else ()
        async with (
            _open_data(settings.data) as store,
            open_keeper(
                config_directory(environ),
                environ,
                tools=builtin_tools().names,
                learn=redactor.know,
            ) as keeper,
            open_user_runtime(store, keeper, environ, strip=foreign) as runtime,
        ):
            _heed_configuration(logs, keeper)
            logs.trace_id = runtime.definitions.observer.trace_id
            wanted = keeper.config.server
            fixed = settings.port is not None
            async with listen(
                settings.hosts if settings.hosts is not None else (wanted.host,),
                settings.port if settings.port is not None else wanted.port,
                settings.socket,
                fall_back=not fixed,
            ) as listening:
                record = _record(settings, store, token, listening)
                server = Server(settings, keeper, runtime, record, stop, redactor.learn)
                with (
                    keeper.watch(partial(_heed_configuration, logs, keeper)),
                    runtime.definitions.observer.gauges(server.gauges),
                    keeper.package.watch(server.upgraded),
                ):
                    path = place_of(settings.data, environ).record
                    await server.run(listening, path, ready, store.is_in_place)
        log.info("the server has ended: %s", stop.reason)


def _heed_configuration(logs: Logs, keeper: Keeper) -> None:
    logs.configure(keeper.config.telemetry.logs)
    logs.redactor.know(keeper.config.secrets)


class Server:
    """A runtime with clients."""

    def __init__(
        self,
        settings: ServeSettings,
        keeper: Keeper,
        runtime: Runtime,
        record: ServerRecord,
        stop: Stop,
        learn: Callable[[Iterable[Secret]], None],
    ) -> None:
        """``learn`` is told the secrets of clients."""
        self._settings = settings
        self._wanted: ServerSettings = keeper.config.server
        self._runtime = runtime
        self._record = record
        self._stop = stop
        self._package = keeper.package
        info = ServerInfo(
            version=VERSION,
            protocol=PROTOCOL_VERSION,
            instance=record.instance,
            pid=record.pid,
            data_directory=record.data_directory,
            started_at=record.started_at,
            auto_started=settings.auto_started,
        )
        address = record.addresses[0] if record.addresses else ""
        self._api = Api(runtime, keeper, info, address=address, shutdown=stop.ask, learn=learn)

    @property
    def gauges(self) -> dict[Gauge, Callable[[], int]]:
        """What there is at a moment, for metrics."""
        return {
            "conversations": lambda: self._runtime.open_conversations,
            "clients": lambda: len(self._api.clients),
        }

    async def run(
        self,
        listening: Listening,
        path: Path,
        ready: Callable[[ServerRecord], None],
        is_in_place: Callable[[], bool],
    ) -> None:
        """Serve until the end is asked for, and end the connections then.

        ``is_in_place`` tells whether the data is still where it was; when not, that is the end.
        """
        hosts = hosts_of(
            listening.addresses, (*self._wanted.allowed_hosts, *self._settings.allowed_hosts)
        )
        origins = (*self._wanted.allowed_origins, *self._settings.allowed_origins)
        guard = Guard(self._record.token, hosts, origins)
        door = FrontDoor(guard, self._speak, self._make_site)
        failure: CannotPublish | None = None
        async with self._bounded_end(), trio.open_nursery() as nursery:
            nursery.start_soon(accept, listening, door.serve)
            nursery.start_soon(self._watch_idleness)
            nursery.start_soon(give_back_memory, self._is_working, resident_bytes, collect_and_trim)
            nursery.start_soon(watch_place, is_in_place, self._settings.data, self._stop)
            try:
                with _published(path, self._record):
                    self._stop.started()
                    ready(self._record)
                    await self._stop.wait()
                    self._api.ending = True
                await trio.sleep(LAST_ANSWERS_S)
            except CannotPublish as error:  # raised below: the nursery would put it in a group
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    @asynccontextmanager
    async def _bounded_end(self) -> AsyncGenerator[None]:
        """Give the block `limits.CONNECTIONS_END_S` from the wish to end on.

        What hangs then is a thread that no cancel reaches: the runtime is ended without it, and
        whoever owns the process is told to give up.
        """
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._give_up_in_time)
            yield
            nursery.cancel_scope.cancel()

    async def _give_up_in_time(self) -> None:
        await self._stop.wait()
        await trio.sleep(limits.CONNECTIONS_END_S)
        log.error(
            "%d connections have not ended within %g s; the server ends without them",
            len(self._api.clients),
            limits.CONNECTIONS_END_S,
        )
        await self._runtime.stop()
        self._stop.give_up()

    async def _speak(self, wire: Wire, peer: PeerInfo) -> None:
        await serve_connection(self._api, wire, peer)

    def upgraded(self) -> None:
        """Tell all clients, those that come later too, that this version is not the newest."""
        log.warning("%s", UPGRADED)
        self._api.notice(UPGRADED)

    def _make_site(self) -> Site:
        """Raises `Refusal` when it would come from another version."""
        try:
            self._package.check(*_OF_THE_SITE)
        except Upgraded as error:
            raise Refusal(503, str(error)) from error
        from vaala.server.transport.http.views import make_site
        from vaala.server.views import ApiViews

        return make_site(ApiViews(self._api))

    async def _watch_idleness(self) -> None:
        minutes = self._settings.idle_exit_minutes
        if minutes is None and self._settings.auto_started:
            minutes = self._wanted.idle_exit_minutes
        if minutes:
            reason = f"nobody has used it for {minutes:g} minutes"
            end = partial(self._stop.ask, reason)
            await exit_when_idle(self._is_busy, self._used_at, end, minutes * 60)

    def _is_working(self) -> bool:
        return self._runtime.busy

    def _is_busy(self) -> bool:
        return len(self._api.clients) > 0 or self._runtime.busy

    def _used_at(self) -> float:
        return self._api.clients.used_at


@asynccontextmanager
async def _open_data(path: Path) -> AsyncGenerator[Store]:
    """Own the data directory; raises `DataUnusable` for what the system says against it."""
    async with AsyncExitStack() as stack:
        try:
            store = await stack.enter_async_context(open_store(path))
        except OSError as error:
            no_directory = isinstance(error, FileExistsError | NotADirectoryError)
            reason = "it is no directory" if no_directory else error.strerror or str(error)
            raise DataUnusable(
                f"the data directory {path} cannot be used: {reason}; choose another with "
                "--data-dir"
            ) from error
        yield store


@contextmanager
def _published(path: Path, record: ServerRecord) -> Generator[None]:
    """Lead clients here while the block runs. Raises `CannotPublish`."""
    try:
        write_record(path, record)
    except OSError as error:
        raise CannotPublish(
            f"clients could not find the server: {path} cannot be written: "
            f"{error.strerror or error}"
        ) from error
    try:
        yield
    finally:
        remove_record(path, record.instance)


def _record(
    settings: ServeSettings, store: Store, token: str, listening: Listening
) -> ServerRecord:
    host, port = listening.addresses[0] if listening.addresses else (None, None)
    return ServerRecord(
        token=token,
        pid=os.getpid(),
        instance=store.instance,
        version=VERSION,
        data_directory=str(settings.data),
        started_at=now_ms(),
        host=host,
        port=port,
        socket=None if listening.path is None else str(listening.path),
    )
