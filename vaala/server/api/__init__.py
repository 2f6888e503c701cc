"""The methods of the protocol, on a runtime."""

from vaala.server.api.api import Api
from vaala.server.api.keeper import ConfigKeeper

__all__ = ["Api", "ConfigKeeper"]
