"""`vaala stop` and `vaala restart`: the end of the server, and its begin anew."""

from __future__ import annotations

import os
from argparse import Namespace
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
    async with find_server(arguments) as client:
        if client is None:
            return None
        pid = client.server.pid
        try:
            await client.shutdown(only_if_idle=arguments.if_idle, reason="vaala stop")
        except Busy as error:
            raise CommandFailed(f"{error}; leave out --if-idle to interrupt it", FAILED) from error
    place = place_of(data_dir(arguments), os.environ)
    with trio.move_on_after(END_S):
        while True:
            if not await trio.to_thread.run_sync(_is_there, place, pid):
                return pid
            await trio.sleep(_POLL_S)
    raise CommandFailed(f"the server (process {pid}) has not ended within {END_S:g} s", FAILED)


def _is_there(place: Place, pid: int) -> bool:
    """Tell whether a server still has the data; blocks. Another client may have begun one since."""
    record = read_record(place.record, place.data)
    return is_owned(place.owner_lock) and (isinstance(record, NoRecord) or record.pid == pid)
