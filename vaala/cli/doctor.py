"""`vaala doctor`: is everything there that an agent needs, and if not, what to do."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncIterator, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import trio
from msgspec import Struct

from vaala.cli.connecting import data_dir, find_server
from vaala.cli.exits import DONE, FAILED, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.standard import say
from vaala.config import Config, ConfigError, load_config
from vaala.config.concealed import conceal
from vaala.dao.data_dir import DataDir
from vaala.dao.index_db import NAMESPACES
from vaala.dao.lock import holder
from vaala.dao.opening import open_store_readonly
from vaala.discovery import NoRecord, place_of, read_record
from vaala.models.choose import provider_of_environ
from vaala.models.http import open_http
from vaala.models.set import models_over
from vaala.paths import config_directory
from vaala.tools.builtin import builtin_tools
from vaala_protocol.base import encode
from vaala_protocol.errors import Refused
from vaala_protocol.pages import ListQuery
from vaala_storage.errors import StorageError
from vaala_storage.sqlite import open_sqlite

CONNECT_S = 5.0
"""How long a provider's host may take to accept a connection."""
FREE_BYTES_MIN = 64 * 1024 * 1024
"""Less than this is soon full: one conversation with commands can write some tens of MB."""


class Finding(Struct, frozen=True):
    check: str
    ok: bool
    text: str
    fix: str = ""
    """What to do; empty when all is well."""


def main(arguments: Namespace) -> int:
    return run_program(partial(_doctor, arguments))


async def _doctor(arguments: Namespace) -> int:
    code = DONE
    async for finding in _findings(arguments):
        code = code if finding.ok else FAILED
        if arguments.json:
            say(encode(finding).decode())
        else:
            say(f"{'ok  ' if finding.ok else 'FAIL'}  {finding.check}: {finding.text}")
            if finding.fix:
                say(f"      {finding.fix}")
    return code


async def _findings(arguments: Namespace) -> AsyncIterator[Finding]:
    data = data_dir(arguments)
    directory = await trio.to_thread.run_sync(check_directory, data)
    yield directory
    yield await _check_index(data, repair="" if directory.ok else directory.fix)
    yield await _check_server(arguments, data)
    try:
        load = partial(
            load_config, config_directory(os.environ), os.environ, tools=builtin_tools().names
        )
        config = await trio.to_thread.run_sync(load)
    except ConfigError as error:
        text = "; ".join(map(str, error.problems))
        yield Finding("configuration", False, text, "mend it: vaala config edit FILE")
        return
    yield Finding("configuration", True, str(config.directory))
    yield await check_model(config, os.environ)


def check_directory(data: Path, free_bytes_min: int = FREE_BYTES_MIN) -> Finding:
    """Look whether the data directory can be used, or made; makes nothing."""
    fix = "choose another with --data-dir or VAALA_DATA_DIR, or mend its owner and mode"
    there = data
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return Finding("data directory", False, f"{there} is no directory", fix)
    if not os.access(there, os.R_OK | os.W_OK | os.X_OK):
        return Finding("data directory", False, f"{there} cannot be written", fix)
    room = os.statvfs(there)
    if (free := room.f_bavail * room.f_frsize) < free_bytes_min:
        text = f"{there} has {free / 1e6:,.1f} MB left, less than {free_bytes_min / 1e6:,.0f} MB"
        return Finding("data directory", False, text, "make room on that disk")
    return Finding("data directory", True, str(data) if there == data else f"{data}, not made yet")


async def _check_index(data: Path, *, repair: str) -> Finding:
    """Look at the file itself: reading commands do without one that is missing or damaged.

    ``repair`` is what the directory needs first; without it nothing can be rebuilt.
    """
    fix = "rebuild it: vaala stop, then vaala reindex"
    if repair:
        fix = f"{repair}; the server makes the index anew by itself"
    file = DataDir(data).metadata_db
    if not await trio.Path(file).exists():
        return Finding("index", True, "not made yet")
    try:
        async with open_sqlite(file, namespaces=NAMESPACES, read_only=True):
            pass
        async with open_store_readonly(data) as reader:
            page = await reader.list(ListQuery(archived=None), None, 1)
    except (OSError, StorageError, Refused) as error:
        return Finding("index", False, str(error), fix)
    if not page.complete:
        return Finding("index", False, "it is not complete", fix)
    return Finding("index", True, "lists and search can be read")


async def _check_server(arguments: Namespace, data: Path) -> Finding:
    """Look at lock, record and server together: each alone may be left from a run that ended."""
    place = place_of(data, os.environ)
    try:
        async with find_server(arguments) as client:
            server = None if client is None else client.server
    except (CommandFailed, Refused) as error:
        owner = await trio.to_thread.run_sync(holder, place.owner_lock)
        text = str(error) if owner is None else str(owner)
        return Finding("server", False, f"it does not answer: {text}", "end that process")
    if server is not None:
        return Finding("server", True, f"version {server.version}, process {server.pid}")
    owner = await trio.to_thread.run_sync(holder, place.owner_lock)
    if owner is not None:
        return Finding("server", True, f"none runs; {owner}")
    record = await trio.to_thread.run_sync(read_record, place.record, place.data)
    left = "" if isinstance(record, NoRecord) else "; the record of an earlier one is harmless"
    return Finding("server", True, f"none runs, and the data has no owner{left}")


async def check_model(config: Config, environ: Mapping[str, str]) -> Finding:
    """Look which model runs when none is named, and whether its host takes connections."""
    async with open_http(environ) as http:
        models = models_over(
            http,
            config.providers,
            environ,
            default=config.default_model,
            unusable=config.unusable,
        )
        try:
            model, why = await models.resolve(None)
        except Refused as refused:
            fix = "choose one: vaala config set models default MODEL"
            return Finding("model", False, str(refused), fix)
    configured = (one for one in config.providers if one.name == model.provider)
    provider = next(configured, None) or provider_of_environ(model.provider, environ)
    if provider is None:
        return Finding("model", True, why)
    shown = conceal("providers.yaml", (provider.name, "base_url"), provider.base_url)
    parts = urlsplit(provider.base_url)
    host, port = parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443)
    try:
        with trio.fail_after(CONNECT_S):
            stream = await trio.open_tcp_stream(host, port)
            await stream.aclose()
    except (OSError, trio.TooSlowError) as error:
        reason = str(error) or f"no answer within {CONNECT_S:g} s"
        source = provider.url_from or f"base_url of {provider.name} in providers.yaml"
        fix = f"start it, or mend {source}"
        return Finding("model", False, f"{shown} cannot be reached: {reason}", fix)
    return Finding("model", True, f"{why}; {shown} can be reached")
