"""`Api`: what the methods of a server work on."""

from __future__ import annotations

from collections.abc import Callable

from vaala.runtime import Runtime
from vaala.server.api.keeper import ConfigKeeper
from vaala.server.clients import Clients
from vaala_protocol.methods.runtime import ServerInfo


class Api:
    """One for each server; shared by all of its connections."""

    def __init__(
        self,
        runtime: Runtime,
        config: ConfigKeeper,
        server: ServerInfo,
        *,
        address: str,
        shutdown: Callable[[str], None],
    ) -> None:
        """``shutdown(reason)`` begins the end of the server and returns at once."""
        self.runtime = runtime
        self.config = config
        self.server = server
        self.address = address
        self.shutdown = shutdown
        self.clients = Clients()
        self.notices: tuple[str, ...] = ()
        """Lines for the person at each client that connects, such as an upgrade that waits."""
