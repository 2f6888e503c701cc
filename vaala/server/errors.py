"""Why a server cannot be; each message is for the person, and names the way out.

CannotServe
+-- CannotListen      an address cannot be had (`vaala.server.transport.listening`)
+-- DataUnusable      the data directory cannot be used
+-- CannotPublish     the record that leads clients here cannot be written

Also raised where a server starts: `ConfigError`, and `StoreLocked` when another one has the data.
"""

from __future__ import annotations


class CannotServe(Exception):
    """The message says why, and what to do."""


class DataUnusable(CannotServe):
    pass


class CannotPublish(CannotServe):
    pass
