"""What holds in every test: an own home, no keys, no network beyond loopback, one hypothesis."""

from __future__ import annotations

import ipaddress
import itertools
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("repeatable", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("repeatable")

PROVIDER_PREFIXES = (
    "ANTHROPIC_", "AZURE_", "GEMINI_", "GOOGLE_", "MISTRAL_", "OLLAMA_", "OPENAI_", "OPENROUTER_",
)  # fmt: skip
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class NetworkForbidden(RuntimeError):
    """A test reached for an address that is not this machine's loopback."""


def _is_loopback(host: object) -> bool:
    if host in (None, "", "localhost", b"localhost"):
        return True
    text = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(text.partition("%")[0]).is_loopback
    except ValueError:
        return False


def _guard(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: sees every socket call of the process, whichever library makes it."""
    if event in ("socket.connect", "socket.sendto"):
        sock, address = arguments[0], arguments[1]
        family = getattr(sock, "family", None)
        if family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return
        host: object = address[0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = arguments[0]
    else:
        return
    if not _is_loopback(host):
        raise NetworkForbidden(f"{event} to {host!r}: tests use 127.0.0.1 and nothing else")


# A shell has what it starts in the background ignore Ctrl-C, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# An audit hook cannot be taken away again, so it is set once for the process.
sys.addaudithook(_guard)


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Make unused paths, one for the home of each test; cheaper than a `tmp_path` for each."""
    base = tmp_path_factory.mktemp("homes")
    return (base / str(number) for number in itertools.count(1))


@pytest.fixture(autouse=True)
def isolated(homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the test an empty home as its working directory, and no variable of the user's.

    Returns the home. What a test starts inherits all of it.
    """
    home = next(homes)
    for name, folder in (
        ("HOME", "."),
        ("XDG_CONFIG_HOME", ".config"),
        ("XDG_DATA_HOME", ".local/share"),
        ("XDG_STATE_HOME", ".local/state"),
        ("XDG_CACHE_HOME", ".cache"),
        ("XDG_RUNTIME_DIR", ".run"),
    ):
        monkeypatch.setenv(name, str(home / folder))
    home.mkdir()
    for name in list(os.environ):
        foreign = name.startswith((*PROVIDER_PREFIXES, "VAALA_")) or name.endswith("_API_KEY")
        if foreign or name.lower() in PROXIES:
            monkeypatch.delenv(name)
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(home)
    return home
