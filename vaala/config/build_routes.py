"""From providers.yaml to where a key is asked for, and how a server is reached."""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from vaala.config.check import problem
from vaala.config.errors import Problem
from vaala.config.limits import CONFIG_FILE_BYTES_MAX
from vaala.config.read import Checked
from vaala.config.schema import ProviderSection, ProvidersFile
from vaala.models.keys.source import KeyCommand, KeyFile, KeyringEntry, KeySource
from vaala.models.provider import Route
from vaala.models.secret import Secret
from vaala.named_file import open_regular


def key_source(
    section: ProviderSection, directory: Path, withheld: tuple[str, ...]
) -> KeySource | None:
    """Return where the key is asked for when it is needed; None: nowhere.

    ``withheld`` are the variables that a command does not inherit.
    """
    if section.api_key_file is not None:
        return KeyFile(named_path(directory, section.api_key_file))
    if section.api_key_command is not None:
        return KeyCommand(tuple(section.api_key_command), withheld)
    if section.api_key_keyring is not None:
        service, _, user = section.api_key_keyring.rpartition("/")
        return KeyringEntry(service, user)
    return None


def named_path(directory: Path, text: str) -> Path:
    """Return the path that a file of the configuration names; ~ of nobody known stays as it is."""
    try:
        return directory / Path(text).expanduser()
    except RuntimeError:
        return directory / text


def route_of(section: ProviderSection, directory: Path) -> Route:
    """Return how the server is reached; a file that `route_problems` names counts as empty."""
    proxy = section.proxy
    path = None if section.ca_file is None else named_path(directory, section.ca_file)
    return Route(
        proxy=None if proxy is None else Secret("" if proxy == "none" else proxy),
        ca_file="" if path is None else str(path),
        ca="" if path is None else _certificates(path)[0],
        trust=section.trust,
    )


def route_problems(file: Checked[ProvidersFile]) -> Iterator[Problem]:
    """Yield the certificate files that cannot be used."""
    for name, section in file.values.root.items():
        if section.ca_file is not None:
            _, fault = _certificates(named_path(file.document.file.parent, section.ca_file))
            if fault:
                yield problem(file.document, (name, "ca_file"), fault)


def _certificates(path: Path) -> tuple[str, str]:
    """Return what is in a file of certificates, and why it cannot be used; empty: it can."""
    import ssl  # only where somebody has certificates of their own

    try:
        with BufferedReader(open_regular(path)) as opened:
            text = opened.read(CONFIG_FILE_BYTES_MAX).decode()
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError):
        return "", f"{path} has no certificates in PEM form"
    except OSError as error:
        return "", f"{path} cannot be read: {error.strerror or error}"
    return text, ""
