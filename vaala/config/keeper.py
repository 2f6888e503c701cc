"""`Keeper`: the configuration that a runtime is in, replaced as a whole or not at all.

Each configuration that is loaded makes models of its own, over connections that all of them share.
So a reload closes nothing: a turn that runs goes on with its models, and these go when nobody
holds them any more. The connections are closed when the keeper is left.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import trio

from vaala.config.config import Config
from vaala.config.errors import ConfigError, Problem
from vaala.config.load import FILES, load_config
from vaala.config.model_list import get_model, list_models
from vaala.definitions import Definitions
from vaala.discovery.environment import KEY_ORDER, OVERLAY_VARIABLES
from vaala.models.base import Model
from vaala.models.catalogue.catalogue import REFRESHED_FILE, Catalogue
from vaala.models.catalogue.facts import Known
from vaala.models.http import Http, ignore, open_http
from vaala.models.keys.late import Learn
from vaala.models.set import ModelSet, models_over
from vaala.package import Package, Upgraded
from vaala.paths import NoHome, state_directory
from vaala.permissions.policy import ModeGate
from vaala.permissions.rules import Rules
from vaala_protocol.errors import BadRequest, ModelUnreachable
from vaala_protocol.methods.catalog import (
    ConfigFileInfo,
    ConfigListResult,
    ModelInfo,
    ModelListResult,
)
from vaala_protocol.methods.runtime import ConfigProblem, ReloadResult, WantedVariables

_Stamp: TypeAlias = tuple[tuple[int, int, int] | None, ...]

_BUILD = "vaala.config.build"
_EDIT = "vaala.config.edit"


@asynccontextmanager
async def open_keeper(
    directory: Path,
    environ: Mapping[str, str],
    *,
    tools: Sequence[str] | None = None,
    rules: Rules | None = None,
    package: Package | None = None,
    learn: Learn = ignore,
) -> AsyncGenerator[Keeper]:
    """Load the configuration and hold its models and their connections; leaving closes them.

    ``tools`` are the names of all tools, ``rules`` hold beside those of the configuration.
    ``package`` notices an upgrade under this process. ``learn`` is told the secrets that no log
    may show: those of files, commands and the keyring as they become known. Raises `ConfigError`.
    """
    load = partial(load_config, directory, environ, tools=tools)
    stamp = await trio.to_thread.run_sync(_stamp, directory, abandon_on_cancel=True)
    config = await trio.to_thread.run_sync(load, abandon_on_cancel=True)
    async with open_http(environ, package, learn) as http:
        yield Keeper(config, stamp, environ, tools, rules or Rules(), http)


def catalogue_file(environ: Mapping[str, str]) -> Path | None:
    """Return where the refreshed catalogue of models lies; None: there is no home for it."""
    try:
        return state_directory(environ) / REFRESHED_FILE
    except NoHome:
        return None


class Keeper:
    """See `open_keeper`. What it is told to change is changed by one at a time."""

    def __init__(
        self,
        config: Config,
        stamp: _Stamp,
        environ: Mapping[str, str],
        tools: Sequence[str] | None,
        rules: Rules,
        http: Http,
    ) -> None:
        self.generation = 0
        """Counts the configurations that were loaded, from 1."""
        self.problems: tuple[ConfigProblem, ...] = ()
        """Why the newest files are not in force; empty when they are."""
        self._environ = environ
        self._tools = tools
        self._rules = rules
        self._http = http
        self._stamp = stamp
        """Of the files when they were last read, whatever came of that."""
        self._changing = trio.Lock()
        self._watchers: list[Callable[[], None]] = []
        self._apply(config)

    def _apply(self, config: Config) -> None:
        self.config = config
        """What is in force."""
        self.model_set: ModelSet = models_over(
            self._http,
            config.providers,
            self._environ,
            default=config.default_model,
            unusable=config.unusable,
        ).with_catalogue(Catalogue(catalogue_file(self._environ)))
        """The models of this configuration."""
        self.generation += 1
        self.problems = ()

    @property
    def package(self) -> Package:
        """Notices an upgrade under this process."""
        return self._http.package

    def definitions(self, before: Definitions) -> Definitions:
        """Return ``before`` with the agents, models and rules that are in force."""
        return msgspec.structs.replace(
            before,
            agents=self.config.agents,
            models=self.model_set,
            titles=self.config.titles,
            gate=ModeGate(self.config.rules.plus(self._rules)),
            keep_rule=self.allow,
        )

    async def allow(self, rule: str) -> None:
        """Add a rule to those of permissions.yaml that allow; one that is there stays as it is.

        Durable, and in force, on return. Raises `BadRequest` where the file cannot be changed.
        Cancel: see `set`.
        """
        known = (await self.get("permissions.yaml")) or {}
        rules: list[str] = known.get("allow") or []
        if rule in rules:
            return
        way: tuple[str | int, ...] = ("allow", len(rules)) if rules else ("allow",)
        result = await self.set("permissions.yaml", way, rule if rules else [rule])
        if result.problems:
            said = result.problems[0]
            raise BadRequest(f"{said.file}: {said.text}; nothing was changed")

    @property
    def wanted(self) -> WantedVariables:
        """Variables of clients that the configuration names, besides those always told."""
        return WantedVariables(
            keys=_without(self.config.key_variables, KEY_ORDER),
            forward=_without(self.config.forward, OVERLAY_VARIABLES),
        )

    @contextmanager
    def watch(self, changed: Callable[[], None]) -> Generator[None]:
        """Call ``changed`` after each attempt to load, good or not, while the block runs.

        It is called by whoever asked for the reload, before that returns, and must not wait.
        """
        self._watchers.append(changed)
        try:
            yield
        finally:
            self._watchers.remove(changed)

    async def reload(self) -> ReloadResult:
        """Load the files again; with problems the configuration before stays in force.

        Raises `Upgraded`, as all that needs a part which is not loaded yet. Cancel: either the old
        or the new one is in force, whole.
        """
        async with self._changing:
            await self._load(await self._look())
            return ReloadResult(generation=self.generation, problems=self.problems)

    async def refresh(self) -> None:
        """Reload when a file has changed since they were last read; it costs a `stat` of each.

        After an upgrade under this process nothing is done. Cancel: as of `reload`.
        """
        async with self._changing:
            if (stamp := await self._look()) != self._stamp:
                with suppress(Upgraded):
                    await self._load(stamp)

    async def _look(self) -> _Stamp:
        return await trio.to_thread.run_sync(_stamp, self.config.directory, abandon_on_cancel=True)

    async def _load(self, stamp: _Stamp) -> None:
        self.package.look()
        self.package.check(_BUILD)
        load = partial(load_config, self.config.directory, self._environ, tools=self._tools)
        try:
            config = await trio.to_thread.run_sync(load, abandon_on_cancel=True)
        except ConfigError as error:
            self.problems = tuple(map(wire_problem, error.problems))
        else:
            self._apply(config)
        self._stamp = stamp
        self._tell()

    async def set(self, file: str, key: tuple[str | int, ...], value: Any) -> ReloadResult:
        """Change one value and load the result; with problems nothing is changed. None deletes.

        Durable on return. Raises `NotFound` for a file that is none, `BadRequest` for a value that
        cannot stand there. Cancel: the change is made whole, and in force, or not at all.
        """
        self.package.check(_EDIT, _BUILD)
        from vaala.config.edit import Editor  # YAML and pydantic, which a start may do without

        editor = Editor(self.config.directory, self._environ, self._tools)
        async with self._changing:
            try:
                config = await trio.to_thread.run_sync(editor.set, file, key, value)
            except ConfigError as error:
                problems = tuple(map(wire_problem, error.problems))
                return ReloadResult(generation=self.generation, problems=problems)
            self._apply(config)
            self._tell()
            return ReloadResult(generation=self.generation)

    async def get(self, file: str, key: tuple[str | int, ...] = ()) -> Any:
        """Return what a file says, or the value at ``key``, with a mark in place of each secret.

        Raises `NotFound`, and `BadRequest` for a file that cannot be read.
        """
        self.package.check(_EDIT, "vaala.config.public")
        from vaala.config.edit import Editor
        from vaala.config.public import public_values

        path = Editor(self.config.directory, self._environ).file(file)
        try:
            return await trio.to_thread.run_sync(public_values, path, key, abandon_on_cancel=True)
        except ConfigError as error:
            raise BadRequest(str(error)) from error

    async def list(self) -> ConfigListResult:
        """Return the files, and why they are not in force where they are not."""
        directory = self.config.directory
        there = await trio.to_thread.run_sync(_there, directory, abandon_on_cancel=True)
        files = [
            ConfigFileInfo(name=name, path=str(directory / name), exists=name in there)
            for name in FILES
        ]
        return ConfigListResult(
            directory=str(directory),
            files=tuple(files),
            generation=self.generation,
            problems=self.problems,
        )

    async def models(self, keys: Mapping[str, str]) -> ModelListResult:
        """Return the models that are known, and the one that runs when none is named.

        ``keys`` are variables of providers that the client has.
        """
        return await list_models(self.config, self.model_set, self._environ, keys)

    async def model_info(self, name: str, keys: Mapping[str, str]) -> ModelInfo:
        """Return a model by name, also one that is in no list, with what is known of it.

        Its server is asked, for some seconds at most. Raises `NotFound` for no such model.
        """
        return await get_model(self.config, self.model_set, self._environ, keys, name)

    def known(self, name: str, keys: Mapping[str, str]) -> Known:
        """Return what is known of the model ``provider/model``, without asking anybody."""
        return self.model_set.known(name, keys)

    async def model(self, name: str | None, keys: Mapping[str, str]) -> tuple[Model, str]:
        """Return the model of a name, or the default, and one line that says why that one.

        Raises `BadRequest` that names what was looked for, where a wrong default stands, and the
        ways out.
        """
        try:
            return await self.model_set.resolve_with(name, keys)
        except ModelUnreachable:
            raise
        except BadRequest as error:
            if name is not None or self.config.default_model is None:
                raise
            place = self.config.directory / "models.yaml"
            raise BadRequest(f"{place}: default: {error}") from error

    def _tell(self) -> None:
        for changed in list(self._watchers):
            changed()


def _without(names: Sequence[str], told: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name not in told))


def _stamp(directory: Path) -> _Stamp:
    """Return what changes with every file: one that is written anew, made or taken away."""
    found: list[tuple[int, int, int] | None] = []
    for name in FILES:
        try:
            about = (directory / name).stat()
            found.append((about.st_mtime_ns, about.st_size, about.st_ino))
        except OSError:
            found.append(None)
    return tuple(found)


def _there(directory: Path) -> frozenset[str]:
    """Return the names of the files that exist."""
    return frozenset(name for name in FILES if (directory / name).exists())


def wire_problem(problem: Problem) -> ConfigProblem:
    """Return a problem as clients get it."""
    return ConfigProblem(
        file=str(problem.file), line=problem.line, key=problem.key, text=problem.text
    )
