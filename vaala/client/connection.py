"""`connect`: a client, for as long as a block runs."""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import trio

from vaala.client.address import parse_address
from vaala.client.client import Client
from vaala.client.finder import Direct, Discovery, Finder
from vaala.discovery import place_of
from vaala.discovery.environment import client_environment
from vaala.paths import data_directory
from vaala.version import VERSION
from vaala_protocol.methods.runtime import ClientEnvironment, ClientInfo, WantedVariables

log = logging.getLogger(__name__)

_REMOVED = "/(the working directory was removed)"


def _directory() -> str:
    """Return the directory of this program. Of one that was removed there is nothing to say that
    would be true; what needs it fails with a path that tells why."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return _REMOVED


@contextmanager
def _discovery(
    data_dir: str | os.PathLike[str] | None, on_notice: Callable[[str], None]
) -> Generator[Discovery]:
    data = Path(data_dir).absolute() if data_dir else data_directory(os.environ)
    discovery = Discovery(place_of(data, os.environ), os.environ, on_notice)
    try:
        yield discovery
    finally:
        discovery.release()


@asynccontextmanager
async def connect(
    data_dir: str | os.PathLike[str] | None = None,
    *,
    address: str | None = None,
    token: str | None = None,
    start: bool = True,
    environment: ClientEnvironment | None = None,
    name: str = "vaala.client",
    on_notice: Callable[[str], None] = log.warning,
) -> AsyncGenerator[Client]:
    """Connect to the server that owns a data directory, and stay connected while the block runs.

    ``data_dir`` is the user's by default (``VAALA_DATA_DIR``, then the usual place); with
    ``start`` a server is started when none runs. Or give the ``address`` (``host:port`` or
    ``unix:/path``) and the ``token`` of one: it is never started. ``environment`` is what local
    commands and models take from this program; by default its directory and those of its variables
    that are usual or that the server's configuration names. A server of another machine is told
    nothing of it. ``name`` says who we are, in status and logs. ``on_notice`` gets lines for the
    person.

    Raises `CannotConnect`, `CannotStart` and `Incompatible`. When the block is left, by an error
    or a cancel too, the connection ends and nothing else: turns go on in the server.
    """
    if (address is None) != (token is None):
        raise ValueError("an address and a token go together")

    def told(wanted: WantedVariables) -> ClientEnvironment:
        return environment or client_environment(
            os.environ, _directory(), keys=wanted.keys, forward=wanted.forward
        )

    failure: Exception | None = None
    with ExitStack() as stack:
        finder: Finder
        if address is not None and token is not None:
            finder = Direct(parse_address(address), token)
        else:
            finder = stack.enter_context(_discovery(data_dir, on_notice))
        async with trio.open_nursery() as nursery:
            info = ClientInfo(name=name, version=VERSION, library=VERSION)
            client = Client(nursery, finder, info, told, start=start, on_notice=on_notice)
            try:
                await nursery.start(client.connector.run)
                yield client
            except Exception as error:  # raised below, bare: the nursery would wrap it
                failure = error
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure
