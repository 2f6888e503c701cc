"""The environment of the client that a conversation works for, in the memory of the server alone.

The client that spoke last counts. Its overlay is for the local commands of that conversation; its
keys are for its models and for nothing else: they stand in no log, no item and no command.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from vaala.discovery.environment import KEY_ORDER, OVERLAY_PREFIXES

if TYPE_CHECKING:
    from vaala_protocol.methods.runtime import ClientEnvironment

_NOTHING: Mapping[str, str] = MappingProxyType({})


class Environment:
    """What was last said; empty before anyone has spoken."""

    def __init__(
        self,
        *,
        own: Mapping[str, str] = os.environ,
        withheld: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """``own`` is what local commands inherit. ``withheld`` tells more variables that no command
        may see, such as the keys that the configuration names at that time."""
        self._own = own
        self._withheld = withheld
        self._keys = _NOTHING
        self._overlay: Mapping[str, str | None] = _NOTHING

    def adopt(self, said: ClientEnvironment) -> None:
        """Take what a client says in place of all that was said before."""
        self._keys = MappingProxyType({**said.keys})
        overlay: dict[str, str | None] = {}
        if said.overlay:
            # A client names what it has of these; what only the server has is of another shell.
            overlay = {name: None for name in self._own if name.startswith(OVERLAY_PREFIXES)}
        overlay.update(said.overlay)
        self._overlay = overlay

    @property
    def keys(self) -> Mapping[str, str]:
        """Variables of providers: below the configuration, above those of the server itself."""
        return self._keys

    @property
    def overlay(self) -> Mapping[str, str | None]:
        """To be laid over the environment of local commands; None: not set."""
        secret = {*KEY_ORDER, *self._keys, *self._withheld()}
        return {name: value for name, value in self._overlay.items() if name not in secret}
