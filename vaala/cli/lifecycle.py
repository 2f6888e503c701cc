"""`vaala stop` and `vaala restart`: the end of the server, and its begin anew."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Callable
from functools import partial

import trio

from vaala.cli.connecting import data_dir, find_server, open_server
from vaala.cli.exits import DONE, FAILED, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.standard import aside, say
from vaala.discovery import NoRecord, Place, is_owned, place_of, read_record
from vaala_protocol.errors import Busy

END_S = 30.0
"""How long the end of a server is waited for: it interrupts turns and writes everything down."""
ENDING_S = 12.0
"""The same of one that is ending already, when whoever has the data may be no server at all."""
_POLL_S = 0.05


def stop(arguments: Namespace) -> int:
    return run_program(partial(_stop, arguments))


def restart(arguments: Namespace) -> int:
    return run_program(partial(_restart, arguments))


async def _stop(arguments: Namespace) -> int:
    pid = await _end(arguments)
    aside("no server runs" if pid is None else f"stopped the server (process {pid})")
    return DONE


async def _restart(arguments: Namespace) -> int:
    await _end(arguments)
    async with open_server(arguments) as client:
        say(f"the server runs (process {client.server.pid})")
    return DONE


async def _end(arguments: Namespace) -> int | None:
    """End the server and wait until it has let go of the data; return its process, if any."""
    place = place_of(data_dir(arguments), os.environ)
    async with find_server(arguments) as client:
        if client is None:
            await _wait_free(place)
            return None
        pid = client.server.pid
        try:
            await client.shutdown(only_if_idle=arguments.if_idle, reason="vaala stop")
        except Busy as error:
            raise CommandFailed(f"{error}; leave out --if-idle to interrupt it", FAILED) from error
    if not await _turns_false(partial(_is_there, place, pid), END_S):
        raise CommandFailed(f"the server (process {pid}) has not ended within {END_S:g} s", FAILED)
    return pid


async def _wait_free(place: Place) -> None:
    """Wait for a server that is just ending: its record is gone, and it still has the data."""
    if await _turns_false(partial(is_owned, place.owner_lock), ENDING_S):
        return
    from vaala.dao.lock import holder  # has more to import than a command that is only a client

    owner = await trio.to_thread.run_sync(holder, place.owner_lock)
    raise CommandFailed(f"no server runs, but {owner}", FAILED)


async def _turns_false(look: Callable[[], bool], patience_s: float) -> bool:
    """Look, in a thread, until there is nothing more; False: it took too long."""
    with trio.move_on_after(patience_s):
        while True:
            if not await trio.to_thread.run_sync(look):
                return True
            await trio.sleep(_POLL_S)
    return False


def _is_there(place: Place, pid: int) -> bool:
    """Tell whether a server still has the data; blocks. Another client may have begun one since."""
    record = read_record(place.record, place.data)
    return is_owned(place.owner_lock) and (isinstance(record, NoRecord) or record.pid == pid)
