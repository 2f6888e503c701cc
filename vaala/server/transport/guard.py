"""`Guard`: who may ask this server for anything, decided from the head of a request alone.

Other programs of this machine are kept out by the token; pages in the user's browser by the Host
and Origin headers, which a page cannot choose. So a name that was made to point to this machine
(DNS rebinding) and a page of another site are refused before the token matters.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl

import trio

from vaala.discovery import (
    AUTHORIZATION_HEADER,
    PROOF_HEADER,
    challenge_of,
    is_bearer,
    is_client_proof,
    proof,
)
from vaala.server.transport import limits
from vaala.server.transport.head import Head
from vaala.server.transport.refusal import Refusal

log = logging.getLogger(__name__)

LOOPBACK_NAMES: Final = ("localhost", "127.0.0.1", "[::1]")
_TOKEN_NAMES = frozenset({"token", "access_token", "auth", "authorization", "bearer", "key"})
_CHALLENGE = (("WWW-Authenticate", 'Bearer realm="vaala"'),)


class Alarm:
    """Tells the log of refusals: the first of a kind at once, those after it by their number."""

    def __init__(self) -> None:
        self._quiet_until: dict[str, float] = {}
        self._untold: dict[str, int] = {}

    def ring(self, kind: str, peer: str) -> None:
        """``kind`` is one of few; nothing that a client chose belongs into it."""
        now = trio.current_time()
        if now < self._quiet_until.get(kind, -1.0):
            self._untold[kind] = self._untold.get(kind, 0) + 1
            return
        self._quiet_until[kind] = now + limits.ALARM_PERIOD_S
        before = self._untold.pop(kind, 0)
        more = f", and {before} more before it" if before else ""
        log.warning("refused: %s, from %s%s", kind, peer, more)


class Guard:
    """Holds the token; it shows in no answer, log or ``repr``."""

    def __init__(self, token: str, hosts: Iterable[str], origins: Iterable[str] = ()) -> None:
        """``hosts`` are the values of Host that mean this server, as in ``localhost:8790``;
        ``origins`` are those of pages that may use it besides its own."""
        self._token = token
        self._hosts = frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._alarm = Alarm()

    def check_place(self, head: Head, peer: str, *, browsers: bool) -> None:
        """Raise `Refusal` for what may come from a page that has no business here.

        ``browsers``: it came in where a browser could have sent it, which no unix socket is.
        """
        if browsers and head.header("host").lower() not in self._hosts:
            self._alarm.ring("a Host that is not this server", peer)
            raise Refusal(
                421, "the Host header does not name this server: use its address, or start it "
                "with --allow-host for the name that you use",
            )  # fmt: skip
        origin = head.header("origin").lower()
        if origin and origin not in self._origins and origin != _own_origin(head):
            self._alarm.ring("a page of another origin", peer)
            raise Refusal(
                403, "pages of other sites may not use this server: start it with --allow-origin "
                "for a page that may",
            )  # fmt: skip
        if self._names_token(head):
            self._alarm.ring("a token in a URL", peer)
            raise Refusal(
                400, "a token does not belong into a URL, where histories and logs keep it: send "
                "it as Authorization: Bearer TOKEN",
            )  # fmt: skip

    def check_token(self, head: Head, peer: str) -> None:
        """Raise `Refusal` for a request that does not have the token.

        Takes the same time however much of a token is right; locks nobody out (H7-5).
        """
        if not is_bearer(head.header(AUTHORIZATION_HEADER), self._token):
            raise self._unknown(head, peer)

    def prove(self, head: Head, peer: str) -> list[tuple[bytes, bytes]]:
        """Return the headers that show the client of an upgrade that this server knows the token.

        Empty for a client that has told the token: from then on anybody could show it. Raises
        `Refusal` for one that knows no token, in the same time for all of these (H7-5).
        """
        given = head.header(AUTHORIZATION_HEADER)
        challenge = challenge_of(given)
        if challenge is None:
            self.check_token(head, peer)
            return []
        try:
            known = is_client_proof(given, self._token)
        except ValueError as error:
            raise Refusal(400, f"{AUTHORIZATION_HEADER}: {error}") from None
        if not known:
            raise self._unknown(head, peer)
        return [(PROOF_HEADER.encode(), proof(self._token, challenge).encode())]

    def _unknown(self, head: Head, peer: str) -> Refusal:
        given = head.header(AUTHORIZATION_HEADER)
        self._alarm.ring("a wrong token" if given else "no token", peer)
        what = "this is not the token of the server that runs now" if given else "a token is needed"
        return Refusal(
            401, f"{what}: send Authorization: Bearer TOKEN with the token of the file "
            "runtime-server.yaml, which is made anew at each start", _CHALLENGE,
        )  # fmt: skip

    def _names_token(self, head: Head) -> bool:
        if self._token in head.query or self._token in head.path:
            return True
        names = {name.lower() for name, _ in parse_qsl(head.query, keep_blank_values=True)}
        return bool(names & _TOKEN_NAMES)


def hosts_of(addresses: Iterable[tuple[str, int]], allowed: Iterable[str]) -> set[str]:
    """Return the values of Host for the addresses that are listened on, and names given besides.

    A name without a port is taken with each of the ports, and without one.
    """
    ports = {port for _, port in addresses}
    names = {*LOOPBACK_NAMES, *(bracketed(host) for host, _ in addresses)}
    hosts = {f"{name}:{port}" for name in names for port in ports}
    if 80 in ports:
        hosts |= names
    for name in allowed:
        hosts.add(name)
        if not _has_port(name):
            hosts |= {f"{name}:{port}" for port in ports}
    return hosts


def bracketed(host: str) -> str:
    """Return an address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def _has_port(name: str) -> bool:
    return name.rpartition(":")[2].isdigit() and not name.endswith("]")


def _own_origin(head: Head) -> str:
    return f"http://{head.header('host').lower()}"
