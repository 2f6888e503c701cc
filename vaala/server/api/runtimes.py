"""``runtime/``: the server itself, and what goes on in all of its conversations."""

from __future__ import annotations

from collections.abc import Sequence

from vaala.server import limits
from vaala.server.api.api import Api
from vaala.server.api.caller import Caller, Opened
from vaala.server.api.fitting import page_limit
from vaala.server.api.memory import resident_bytes
from vaala.server.api.method import Method, config_lane, method, no_lane, view, watch_lane
from vaala.server.api.versions import judge, mismatch
from vaala.usage import usage_page
from vaala_protocol.errors import BadRequest, Busy, Incompatible, Outdated, Stopping
from vaala_protocol.methods import runtime as wire
from vaala_protocol.methods.base import Done
from vaala_protocol.usage import UsagePage


async def initialize(caller: Caller, params: wire.InitializeParams) -> wire.InitializeResult:
    if caller.client is not None:
        raise BadRequest(f"this connection is initialized already, by {caller.name}")
    _check_name(params.client)
    api = caller.api
    if api.ending:
        raise Stopping("this server is just ending: start another")
    await api.config.refresh()
    notices = [*api.notices, *_about_config(api.config.problems)]
    match judge(api.server, params, idle=_is_idle(caller)):
        case "yield":
            api.shutdown(f"a client of vaala {params.client.library} is newer")
            raise Outdated(
                f"this server (vaala {api.server.version}) ends for a newer client: start another"
            )
        case "refuse":
            raise Incompatible(mismatch(api.server, params))
        case "notice":
            notices.append(
                f"the server runs vaala {api.server.version} and this client is "
                f"{params.client.library}: `vaala restart` when its work is done"
            )
        case "serve":
            pass
    if params.environment is not None:
        caller.runs_in(params.environment)
    caller.client = params.client
    wanted = api.config.wanted if caller.peer.local else wire.WantedVariables()
    return wire.InitializeResult(server=api.server, wanted=wanted, notices=tuple(notices))


def _about_config(problems: Sequence[wire.ConfigProblem]) -> list[str]:
    """Return a line for the person when the newest configuration is not in force."""
    if not problems:
        return []
    first = problems[0]
    place = first.file if first.line is None else f"{first.file}:{first.line}"
    told = f"{place}: {first.key}: {first.text}" if first.key else f"{place}: {first.text}"
    more = f" (and {len(problems) - 1} more: `vaala config check`)" if len(problems) > 1 else ""
    line = " ".join(told.split())
    return [f"the configuration before stays in force, the new one cannot be used: {line}{more}"]


def _check_name(client: wire.ClientInfo) -> None:
    """Raise `BadRequest` for what cannot stand in logs and beside decisions."""
    texts = {"name": client.name, "version": client.version, "library": client.library}
    for field, text in texts.items():
        if not text.isprintable() or len(text) > limits.CLIENT_NAME_CHARACTERS_MAX:
            raise BadRequest(
                f"client.{field}: expected at most {limits.CLIENT_NAME_CHARACTERS_MAX} printable "
                f"characters, got {text[:40]!r}",
                field=f"client.{field}",
            )
    if not client.name:
        raise BadRequest("client.name: it is empty; say who you are", field="client.name")


def _is_idle(caller: Caller) -> bool:
    """Nothing runs, and nobody else is connected."""
    return not caller.api.runtime.busy and len(caller.api.clients) <= 1


async def status(api: Api, params: wire.RuntimeStatusParams) -> wire.RuntimeStatusResult:
    return wire.RuntimeStatusResult(
        server=api.server,
        address=api.address,
        clients=len(api.clients),
        memory_bytes=resident_bytes(),
        conversations=api.runtime.status(limits.STATUS_CONVERSATIONS_MAX),
        open_conversations=api.runtime.open_conversations,
        config_generation=api.config.generation,
        notices=api.notices,
    )


async def subscribe(caller: Caller, params: wire.RuntimeSubscribeParams) -> Opened:
    snapshot, watch = await caller.watches.watch_runtime()
    return Opened(snapshot, watch.begin)


async def unsubscribe(caller: Caller, params: wire.RuntimeUnsubscribeParams) -> Done:
    caller.watches.leave_runtime()
    return Done()


async def usage(caller: Caller, params: wire.RuntimeUsageParams) -> UsagePage:
    limit = page_limit(params.limit, limits.USAGE_ROWS_MAX)
    store = caller.api.runtime.store
    return await usage_page(store, caller.known, params.since, params.cursor, limit)


async def reload(caller: Caller, params: wire.ReloadParams) -> wire.ReloadResult:
    return await caller.api.config.reload()


async def shutdown(caller: Caller, params: wire.ShutdownParams) -> Done | Opened:
    api = caller.api
    if params.only_if_idle and api.runtime.busy:
        raise Busy("a turn, a command or a decision is under way: `vaala status` shows which")
    reason = params.reason or f"{caller.name} asked for it"
    return Opened(Done(), lambda: api.shutdown(reason))


METHODS: tuple[Method, ...] = (
    method(wire.InitializeParams, initialize, no_lane),
    view(wire.RuntimeStatusParams, status),
    Method(wire.RuntimeSubscribeParams, subscribe, watch_lane, bulky=True),
    method(wire.RuntimeUnsubscribeParams, unsubscribe, watch_lane),
    Method(wire.RuntimeUsageParams, usage, no_lane, bulky=True),
    method(wire.ReloadParams, reload, config_lane),
    method(wire.ShutdownParams, shutdown, no_lane),
)
