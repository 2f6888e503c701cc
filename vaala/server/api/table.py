"""Every method of the server, by name."""

from __future__ import annotations

from collections.abc import Mapping

from vaala.server.api import (
    catalog,
    commands,
    conversations,
    decisions,
    runtimes,
    services,
    sessions,
)
from vaala.server.api.method import Method

METHODS: Mapping[str, Method] = {
    each.name: each
    for module in (runtimes, conversations, sessions, decisions, commands, services, catalog)
    for each in module.METHODS
}
