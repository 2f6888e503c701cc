"""`Api`: what the methods of a server work on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from vaala.models.secret import Secret
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
        learn: Callable[[Iterable[Secret]], None],
    ) -> None:
        """``shutdown(reason)`` begins the end of the server and returns at once. ``learn`` is told
        the secrets of clients, so that no log shows them."""
        self.runtime = runtime
        self.config = config
        self.server = server
        self.address = address
        self.shutdown = shutdown
        self.learn = learn
        self.clients = Clients()
        self.ending = False
        """The end was asked for: nobody is welcome any more."""
        self.notices: tuple[str, ...] = ()
        """Lines for the person at each client that connects, such as an upgrade that waits."""

    def notice(self, text: str) -> None:
        """Tell every client a line for the person, now or when it connects."""
        self.notices = (*self.notices, text)
        self.clients.notify("warning", text)
