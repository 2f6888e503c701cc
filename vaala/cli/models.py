"""`vaala models`: which models there are, what is known of them, and more of them."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

import trio
from msgspec import Struct

from vaala.cli.connecting import find_server
from vaala.cli.exits import DONE, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.standard import aside, say
from vaala.client import Client
from vaala.paths import config_directory
from vaala.tools.text import clean_line
from vaala_protocol.base import encode
from vaala_protocol.methods.catalog import (
    ModelGetParams,
    ModelInfo,
    ModelListParams,
    ModelListResult,
)
from vaala_protocol.methods.runtime import ReloadParams
from vaala_protocol.prices import ModelPrices

if TYPE_CHECKING:
    from vaala.config.keeper import Keeper

_NO_KEYS: Final[Mapping[str, str]] = MappingProxyType({})
"""Those of the environment are this process's own."""
_UNKNOWN = "not known"


def main(arguments: Namespace) -> int:
    action = arguments.action
    if action == "show" and not arguments.name:
        raise CommandFailed("models show: name a model, as PROVIDER/MODEL", USAGE)
    if arguments.name and action in ("list", "refresh"):
        raise CommandFailed(f"models {action}: takes no {arguments.name!r}", USAGE)
    for option in _OF_ADD:
        if getattr(arguments, option) and not (action == "add" or (action, option) in _OTHERS):
            name = f"--{option.replace('_', '-')}"
            raise CommandFailed(f"models {action} takes no {name}", USAGE)
    return run_program(partial(_program(action), arguments))


_OF_ADD = (
    "url", "api", "key_env", "key_file", "key_command", "key_keyring", "key_stdin", "model",
    "default", "test", "no_test", "yes",
)  # fmt: skip
_OTHERS = (("remove", "yes"),)
"""Options of other actions."""


def _program(action: str) -> Callable[[Namespace], Awaitable[int]]:
    """Return what an action does; what some of them need is imported for them alone."""
    if action in ("add", "remove"):
        from vaala.cli import models_add

        return models_add.add if action == "add" else models_add.remove
    if action == "test":
        from vaala.cli.models_test import test

        return test
    return {"list": _list, "show": _show, "refresh": _refresh}[action]


class _Source(Protocol):
    async def list(self) -> ModelListResult: ...

    async def get(self, name: str) -> ModelInfo: ...


class _Server(Struct, frozen=True):
    client: Client

    async def list(self) -> ModelListResult:
        return await self.client.ask(ModelListParams())

    async def get(self, name: str) -> ModelInfo:
        return await self.client.ask(ModelGetParams(name=name))


class _Configuration(Struct, frozen=True):
    keeper: Keeper

    async def list(self) -> ModelListResult:
        return await self.keeper.models(_NO_KEYS)

    async def get(self, name: str) -> ModelInfo:
        return await self.keeper.model_info(name, _NO_KEYS)


@asynccontextmanager
async def _source(arguments: Namespace) -> AsyncGenerator[_Source]:
    """Open what tells models: the server where one runs, else the configuration itself."""
    async with find_server(arguments) as client:
        if client is not None:
            yield _Server(client)
            return
    from vaala.config.keeper import open_keeper

    async with open_keeper(config_directory(os.environ), os.environ) as keeper:
        yield _Configuration(keeper)


async def _list(arguments: Namespace) -> int:
    async with _source(arguments) as source:
        listed = await source.list()
    if arguments.json:
        say(encode(listed).decode())
        return DONE
    width = max((len(one.name) for one in listed.models), default=0)
    for one in listed.models:
        mark = "*" if one.name == listed.default else " "
        say(f"{mark} {clean_line(one.name, 120):{width}}  {_summary(one)}")
    aside(listed.reason)
    return DONE


async def _show(arguments: Namespace) -> int:
    async with _source(arguments) as source:
        found = await source.get(arguments.name)
    if arguments.json:
        say(encode(found).decode())
    else:
        say("\n".join(model_lines(found)))
    return DONE


async def _refresh(arguments: Namespace) -> int:
    from vaala.config.keeper import catalogue_file

    file = catalogue_file(os.environ)
    if file is None:
        raise CommandFailed("there is no home directory: set HOME, or XDG_STATE_HOME", UNREACHABLE)
    count = await refresh(file, os.environ)
    async with find_server(arguments) as client:
        if client is not None:
            await client.ask(ReloadParams())
    if arguments.json:
        say(encode({"file": str(file), "models": count}).decode())
    else:
        say(f"{count:,} models of OpenRouter, in {file}")
    return DONE


async def refresh(file: Path, environ: Mapping[str, str], url: str | None = None) -> int:
    """Take the list and keep it in ``file``; return how many models it has.

    Raises `CommandFailed`; the list before stays then.
    """
    from vaala.models.base import ModelFailure
    from vaala.models.catalogue.refresh import LIST_URL, fetch_list, write_list
    from vaala.models.http import open_http

    try:
        async with open_http(environ) as http:
            facts = await fetch_list(http, datetime.now(UTC).date().isoformat(), url or LIST_URL)
        await trio.to_thread.run_sync(write_list, facts, file)
    except ModelFailure as failure:
        raise CommandFailed(failure.message, UNREACHABLE) from failure
    except OSError as error:
        text = f"{file} cannot be written: {error.strerror or error}"
        raise CommandFailed(text, UNREACHABLE) from error
    return len(facts.models)


def _summary(info: ModelInfo) -> str:
    if not info.usable:
        return f"cannot be used: {clean_line(info.reason, 200)}"
    parts = [] if info.context_tokens is None else [f"{info.context_tokens:,} tokens"]
    if info.prices is not None:
        parts.append(f"${info.prices.input or '?'} in, ${info.prices.output or '?'} out")
    parts.append(f"from {clean_line(info.source, 120)}")
    return "; ".join(parts)


def model_lines(info: ModelInfo) -> Iterator[str]:
    """Yield what is known of a model, and who says it."""
    yield clean_line(info.name, 200)
    yield f"  from      {clean_line(info.source, 200)}"
    if not info.usable:
        yield f"  unusable  {clean_line(info.reason, 400)}"
    features = _UNKNOWN if info.features is None else ", ".join(info.features) or "none"
    yield f"  window    {_tokens(info.context_tokens)}{_said(info, 'contextTokens')}"
    yield f"  answer    {_tokens(info.output_tokens)}{_said(info, 'outputTokens')}"
    yield f"  features  {features}{_said(info, 'features')}"
    if info.prices is None:
        yield f"  prices    {_UNKNOWN}; say them in providers.yaml"
    else:
        yield f"  prices    in US dollars for a million tokens{_said(info, 'prices')}"
        yield from _price_lines(info.prices)
    if info.catalogue is not None:
        yield f"  catalogue {info.catalogue.url}, of {info.catalogue.as_of}"


def _price_lines(prices: ModelPrices) -> Iterator[str]:
    for name in ("input", "cache_read", "cache_write", "output"):
        line = f"    {name.replace('_', ' '):12}{getattr(prices, name) or _UNKNOWN}"
        if prices.long is not None:
            above = getattr(prices.long, name) or _UNKNOWN
            line += f"; {above} where the prompt has more than {prices.long.above_tokens:,} tokens"
        yield line
    if prices.until is not None:
        yield f"    until {prices.until}"


def _tokens(count: int | None) -> str:
    return _UNKNOWN if count is None else f"{count:,} tokens"


_SAYS = {"config": "providers.yaml", "server": "its server", "catalogue": "the catalogue"}


def _said(info: ModelInfo, field: str) -> str:
    source = info.facts.get(field)
    return "" if source is None else f" ({_SAYS[source]})"
