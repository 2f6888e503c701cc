"""Reads keys from files and from the keyring of the system. Both block: for threads."""

from __future__ import annotations

import importlib
import importlib.util
from io import BufferedReader

from vaala.models.keys.source import KeyFile, KeyringEntry, NoKey
from vaala.models.limits import KEY_OUTPUT_BYTES_MAX
from vaala.named_file import open_regular

KEYRING_MISSING = "a key in the keyring needs a further library: pip install 'vaala[keyring]'"


def keyring_installed() -> bool:
    """Tell whether the library is there, without importing it."""
    return importlib.util.find_spec("keyring") is not None


def read_key_file(source: KeyFile) -> str:
    """Return what is in the file, without the line break at its end. Raises `NoKey`."""
    try:
        with BufferedReader(open_regular(source.path)) as opened:
            content = opened.read(KEY_OUTPUT_BYTES_MAX)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise NoKey(f"{source} cannot be read: {reason}") from error
    return content.decode("utf-8", "replace").strip()


def ask_keyring(source: KeyringEntry) -> str:
    """Return a password of the keyring. Raises `NoKey`.

    Importing the library and its backends takes some tenths of a second, and an answer may wait
    for a person who unlocks the keyring.
    """
    try:
        library = importlib.import_module("keyring")
    except ModuleNotFoundError as error:
        raise NoKey(KEYRING_MISSING) from error
    try:
        found: str | None = library.get_password(source.service, source.user)
    except Exception as error:  # each backend has errors of its own
        name = type(error).__name__
        raise NoKey(f"{source} cannot be read: {name}: {error}") from None
    if found is None:
        raise NoKey(f"{source} has no such entry: keyring set {source.service} {source.user}")
    return found.strip()
