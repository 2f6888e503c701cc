"""`open_models`: the models of a runtime, by name, and the one that is used when none is named."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import trio
from msgspec import Struct
from msgspec.structs import replace

from vaala.models.base import Model, ModelFailure, Models
from vaala.models.catalogue.catalogue import Catalogue
from vaala.models.catalogue.facts import Known, ModelFacts
from vaala.models.catalogue.knowledge import Knowledge
from vaala.models.choose import (
    PROVIDERS,
    Found,
    default_model,
    find_by_key,
    key_needed,
    nothing_found,
    provider_of_environ,
    with_key,
)
from vaala.models.client import Client, client_for
from vaala.models.http import Http, open_http
from vaala.models.limits import CHOICE_KEPT_S, CLIENTS_MAX
from vaala.models.listing import LOCAL_SERVERS, LocalServer, list_facts, probe
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala_protocol.errors import BadRequest, ModelUnreachable

if TYPE_CHECKING:
    from vaala.models.scripted.files import Scripts
    from vaala.models.scripted.model import ScriptedModel

# Each kind of model is imported when one of it is first wanted: a run has one kind.

_SCRIPTED = "scripted"
_FILE_PREFIX = f"{_SCRIPTED}:"
_OF_SCRIPTS = tuple(f"vaala.models.scripted.{name}" for name in ("demo", "files", "model"))

_Keys: TypeAlias = Mapping[str, str]
"""Variables of providers that one client has: in no state of the set, but for the clients of
models, which are found again by the key itself."""
_NO_KEYS: _Keys = MappingProxyType({})


class _Sources(Struct, frozen=True):
    """What `models_over` was given."""

    providers: Sequence[Provider]
    environ: Mapping[str, str]
    default: str | None
    unusable: Mapping[str, str]
    models: Mapping[str, Model]
    local_servers: Sequence[LocalServer]


@asynccontextmanager
async def open_models(
    providers: Sequence[Provider],
    environ: Mapping[str, str],
    *,
    default: str | None = None,
    unusable: Mapping[str, str] | None = None,
    models: Mapping[str, Model] | None = None,
    local_servers: Sequence[LocalServer] = LOCAL_SERVERS,
) -> AsyncGenerator[ModelSet]:
    """Hold the models and their connections; leaving closes them.

    ``providers`` and ``default`` are the configuration's, ``unusable`` its providers that cannot
    be used, each with the reason. ``models`` are given as objects and go before all others.
    ``environ`` has keys, proxies and certificate files.

    Names: ``provider/model``; ``provider`` for its default; ``model`` alone for one of the default
    provider; ``scripted`` for the built-in script, ``scripted:FILE`` for another (a relative path
    starts at the directory of this process); and those of ``models``.
    """
    async with open_http(environ) as http:
        yield models_over(
            http, providers, environ,
            default=default, unusable=unusable, models=models, local_servers=local_servers,
        )  # fmt: skip


def models_over(
    http: Http,
    providers: Sequence[Provider],
    environ: Mapping[str, str],
    *,
    default: str | None = None,
    unusable: Mapping[str, str] | None = None,
    models: Mapping[str, Model] | None = None,
    local_servers: Sequence[LocalServer] = LOCAL_SERVERS,
) -> ModelSet:
    """Make the models that `open_models` describes over connections that the caller holds.

    Another set over the same connections can take its place at any moment: what the models of
    this one still do goes on. ``environ`` has keys; proxies are those of ``http``.
    """
    sources = _Sources(providers, environ, default, unusable or {}, models or {}, local_servers)
    return ModelSet(sources, http, Catalogue())


class ModelSet(Models):
    """See `open_models`."""

    def __init__(self, sources: _Sources, http: Http, catalogue: Catalogue) -> None:
        self._sources = sources
        self._http = http
        self._knowledge = Knowledge(catalogue)
        self._configured = {provider.name: provider for provider in sources.providers}
        self._clients: dict[tuple[str, str, Secret | None], Client] = {}
        """By name, URL and key of the provider; the one that was used last stands last."""
        self._demo: ScriptedModel | None = None
        self._scripts: Scripts | None = None
        self._probing = trio.Lock()
        self._local: tuple[LocalServer, dict[str, ModelFacts]] | None = None
        self._local_until = 0.0

    def with_catalogue(self, catalogue: Catalogue) -> ModelSet:
        """Return a set of the same models that knows what this catalogue knows."""
        return ModelSet(self._sources, self._http, catalogue)

    @property
    def names(self) -> tuple[str, ...]:
        """Those given, and those that the configuration lists."""
        usable = (
            provider
            for provider in self._sources.providers
            if provider.name not in self._sources.unusable
        )
        listed = [f"{provider.name}/{model}" for provider in usable for model in provider.models]
        return (*self._sources.models, *listed)

    async def resolve(self, name: str | None) -> tuple[Model, str]:
        """Return the model called ``name`` and one line that says why it was chosen.

        With None: the configured default, else the first configured provider that can be used,
        else the first key of the environment, else a local server. Raises `BadRequest`.
        """
        return await self.resolve_with(name, _NO_KEYS)

    async def resolve_with(self, name: str | None, keys: Mapping[str, str]) -> tuple[Model, str]:
        """See `Models.resolve_with`.

        A key makes a configured provider usable that looks for it by that name. All variables of a
        provider that is not configured come from the client when one of them does, so that no key
        of one side goes to a URL of the other.
        """
        if name is None:
            return await self._default(keys)
        model = await self._named(name, keys)
        return model, f"model {model.name}: chosen by name"

    def known(self, name: str, keys: Mapping[str, str]) -> Known:
        """Return what is known of the model ``provider/model``, without asking anybody."""
        head, _, model = name.partition("/")
        provider = self._known_provider(head, keys)
        return Known() if provider is None else self._knowledge.of(provider, model)

    async def ask(self, name: str, keys: Mapping[str, str]) -> Known:
        """Like `known`, after the model's server was asked, when it answers; see `list_facts`."""
        head, _, _ = name.partition("/")
        provider = self._known_provider(head, keys)
        if provider is not None:
            with suppress(ModelFailure):
                self._knowledge.told(provider, await list_facts(self._http, provider))
        return self.known(name, keys)

    def _known_provider(self, name: str, keys: _Keys) -> Provider | None:
        """Return a provider, whether it can be used or not."""
        configured = self._configured.get(name)
        if configured is not None:
            return with_key(configured, keys)
        for variables in (keys, self._sources.environ):
            with suppress(BadRequest):  # the base URL is none
                if (provider := provider_of_environ(name, variables)) is not None:
                    return provider
        if (known := PROVIDERS.get(name)) is not None:
            return Provider(name, known.url, api=known.api)
        local = next((one for one in self._sources.local_servers if one.name == name), None)
        return None if local is None else local.provider

    async def _named(self, name: str, keys: _Keys) -> Model:
        given = self._sources.models.get(name)
        if given is not None:
            return given
        if name == _SCRIPTED or name.startswith(_FILE_PREFIX):
            return await self._scripted(name)
        head, slash, model = name.partition("/")
        provider = self._provider(head, keys)
        if provider is not None and slash and model:
            return self._model(provider, model)
        if provider is not None and not slash:
            return await self._of(Found(provider, default_model(provider), ""))
        return await self._of_default_provider(name, keys)

    async def _scripted(self, name: str) -> Model:
        self._http.package.check(*_OF_SCRIPTS)
        from vaala.models.scripted.demo import DEMO
        from vaala.models.scripted.files import Scripts
        from vaala.models.scripted.model import ScriptedModel

        if name != _SCRIPTED:
            path = Path(name.removeprefix(_FILE_PREFIX))
            self._scripts = self._scripts or Scripts()
            return await self._scripts.load(path)
        if self._demo is None:
            self._demo = ScriptedModel(DEMO)
        return self._demo

    def _provider(self, name: str, keys: _Keys) -> Provider | None:
        """Return a provider that can be used; raises `BadRequest` for one that cannot."""
        configured = self._configured.get(name)
        provider = None if configured is None else self._usable(configured, keys)
        if provider is not None:
            return provider
        reason = self._sources.unusable.get(name)
        if reason is not None:
            raise BadRequest(f"the provider {name} cannot be used: {reason}")
        provider = provider_of_environ(name, keys)
        provider = provider or provider_of_environ(name, self._sources.environ)
        if provider is not None:
            return provider
        if name in PROVIDERS:
            raise BadRequest(key_needed(name))
        local = next((one for one in self._sources.local_servers if one.name == name), None)
        return None if local is None else local.provider

    def _usable(self, provider: Provider, keys: _Keys) -> Provider | None:
        """Return a configured provider with the key that counts; None: it has none."""
        keyed = with_key(provider, keys)
        return None if keyed is provider and provider.name in self._sources.unusable else keyed

    async def _of_default_provider(self, model: str, keys: _Keys) -> Model:
        """Take ``model`` for one of the provider that would be used if none were named."""
        try:
            found = await self._found(keys, beside_default=True)
        except BadRequest:
            found = None
        if found is None or ("/" in model and model not in found.provider.models):
            raise BadRequest(self._unknown(model))
        return self._model(found.provider, model)

    def _model(self, provider: Provider, model: str) -> Model:
        if provider.models and model not in provider.models:
            offered = [f"{provider.name}/{one}" for one in provider.models]
            name = f"{provider.name}/{model}"
            raise BadRequest(
                f"{provider.name} has no model {model!r} in the configuration;"
                f" {_close(name, offered)}"
            )
        named = (provider.name, provider.base_url, provider.key)
        client = self._clients.pop(named, None)
        if client is None or client.provider != provider:
            client = client_for(provider, self._http)
        window = self._knowledge.of(provider, model).facts.window
        if window is not None:
            client.windows[model] = window
        self._clients[named] = client
        if len(self._clients) > CLIENTS_MAX:
            del self._clients[next(iter(self._clients))]
        return client.model(model)

    def _unknown(self, name: str) -> str:
        known = [*self._sources.models, _SCRIPTED]
        for provider in self._configured.values():
            known += [f"{provider.name}/{model}" for model in provider.models] or [provider.name]
        known += [*PROVIDERS, *(one.name for one in self._sources.local_servers)]
        return f"no model is called {name!r}; write PROVIDER/MODEL; {_close(name, known)}"

    async def _default(self, keys: _Keys) -> tuple[Model, str]:
        if self._sources.default is not None:
            model = await self._named(self._sources.default, keys)
            return model, f"model {model.name}: the default of the configuration"
        if self._sources.models:
            name, model = next(iter(self._sources.models.items()))
            return model, f"model {name}: the first that was given"
        found = await self._found(keys, beside_default=False)
        model = await self._of(found)
        return model, f"model {model.name}: {found.why}"

    async def _of(self, found: Found) -> Model:
        """Return the model that was found; the server is asked when the name is still open."""
        name = found.model
        if name is None:
            try:
                listed = await list_facts(self._http, found.provider)
                self._knowledge.told(found.provider, listed)
                name = next(iter(listed))
            except ModelFailure as failure:
                if failure.kind == "network":
                    raise ModelUnreachable(failure.message) from failure
                if failure.kind == "auth":
                    raise BadRequest(failure.message) from failure
                raise BadRequest(
                    f"the server of {found.provider.name} does not tell its models"
                    f" ({failure.message}): name one, as {found.provider.name}/MODEL"
                ) from failure
        return self._model(found.provider, name)

    async def _found(self, keys: _Keys, *, beside_default: bool) -> Found:
        """Look for what there is.

        With ``beside_default`` the provider of the configured default goes first: another model
        of it is wanted.
        """
        head, slash, _ = (self._sources.default or "").partition("/")
        if beside_default and slash and (provider := self._provider(head, keys)) is not None:
            return Found(provider, None, "the provider of the configured default")
        for configured in self._sources.providers:
            if (provider := self._usable(configured, keys)) is not None:
                why = "the first provider of the configuration"
                return Found(provider, default_model(provider), why)
        if (found := find_by_key(keys)) is not None:
            return replace(found, why=f"{found.why} at the client")
        if (found := find_by_key(self._sources.environ)) is not None:
            return found
        server, listed = await self._local_server()
        self._knowledge.told(server.provider, listed)
        why = f"{server.title} runs here on port {server.port}"
        return Found(server.provider, next(iter(listed)), why)

    async def _local_server(self) -> tuple[LocalServer, dict[str, ModelFacts]]:
        """Return a model server of this machine and its models, or raise `BadRequest`.

        What was found counts for `CHOICE_KEPT_S`. One looks, all wait.
        """
        async with self._probing:
            if self._local is None or trio.current_time() >= self._local_until:
                self._local = await probe(self._http, self._sources.local_servers)
                self._local_until = trio.current_time() + CHOICE_KEPT_S
            if self._local is None:
                raise BadRequest(nothing_found(self._sources.local_servers))
            return self._local


def _close(name: str, known: Iterable[str]) -> str:
    """Name what was perhaps meant, or all that there is."""
    import difflib

    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    return f"did you mean {', '.join(close)}?" if close else f"there are {', '.join(names)}"
