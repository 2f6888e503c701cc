"""`vaala models add` and `remove`: a provider is looked at, tried and written down, or goes."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from typing import Any

import trio
from msgspec import Struct
from msgspec.structs import replace

from vaala.cli.config import VALUE_BYTES_MAX, changed, open_editor
from vaala.cli.connecting import find_server
from vaala.cli.exits import DONE, FAILED, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.models_ask import ask_key, ask_model, ask_provider
from vaala.cli.models_test import told_trial
from vaala.cli.person import Person
from vaala.cli.standard import aside, say
from vaala.cli.terminal import open_terminal
from vaala.cli.trial import try_model
from vaala.config.config import Config
from vaala.config.edit import Edit, Editor
from vaala.config.provider_edits import (
    Before,
    KeyAt,
    KeyPlace,
    Wanted,
    changes,
    edits_to_add,
    edits_to_remove,
    read_before,
)
from vaala.models.base import ModelFailure
from vaala.models.choose import PROVIDERS, default_model
from vaala.models.http import Http, open_http
from vaala.models.listing import LOCAL_SERVERS
from vaala.models.probing import bare_url, find_format
from vaala.models.provider import Api, Provider
from vaala.models.secret import Secret
from vaala.models.set import models_over
from vaala_protocol.base import encode
from vaala_protocol.methods.runtime import ReloadParams

_KEY_OPTIONS: dict[str, KeyPlace] = {
    "key_env": "api_key_env",
    "key_file": "api_key_file",
    "key_command": "api_key_command",
    "key_keyring": "api_key_keyring",
}


async def add(arguments: Namespace) -> int:
    """Add a provider; nothing is written before all questions are answered and it was tried."""
    with open_terminal() as terminal:
        told = any(getattr(arguments, one) for one in (*_KEY_OPTIONS, "key_stdin", "url", "yes"))
        person = None if terminal is None else Person(terminal)
        adding = await _begin(arguments, None if told else person)
        adding = replace(adding, model=adding.usual_model)
        if not arguments.no_test:
            adding = await adding.looked_at()
        wanted = replace(adding.wanted, default=await adding.default())
        edits = edits_to_add(wanted, adding.before)
        await _confirm(edits, adding.before, person, yes=arguments.yes)
        await _write(adding.editor, edits, arguments)
    if arguments.json:
        default = None if wanted.default is None else f"{wanted.name}/{wanted.default}"
        shown = {"provider": wanted.name, "url": wanted.base_url, "default": default}
        say(encode(shown).decode())
    return DONE


async def remove(arguments: Namespace) -> int:
    """Remove a provider, with its key in secrets.yaml and the default that is a model of it."""
    editor, name = open_editor(), arguments.name
    if not name:
        raise CommandFailed("models remove: name a provider", USAGE)
    before = await trio.to_thread.run_sync(read_before, editor.directory)
    if before.provider(name) is None:
        known = ", ".join(before.files["providers.yaml"]) or "none"
        text = f"providers.yaml has no provider {name!r}; there are: {known}"
        raise CommandFailed(text, USAGE)
    edits = edits_to_remove(name, before)
    with open_terminal() as terminal:
        person = None if terminal is None else Person(terminal)
        await _confirm(edits, before, person, yes=arguments.yes)
        await _write(editor, edits, arguments)
    aside(f"removed {name}")
    return DONE


class _Adding(Struct, frozen=True):
    """A provider that is about to be added."""

    arguments: Namespace
    editor: Editor
    before: Before
    wanted: Wanted
    person: Person | None
    """Who answers questions; None: everything was told."""
    model: str | None = None
    """The one to try, and perhaps to be the default."""

    @property
    def usual_model(self) -> str | None:
        """The one that is told, else that of the provider where it has one; None: not known."""
        if self.arguments.model is not None:
            return str(self.arguments.model)
        listed = (self.before.provider(self.wanted.name) or {}).get("models") or ()
        return default_model(Provider("", self.wanted.base_url, models=tuple(listed)))

    async def looked_at(self) -> _Adding:
        """Ask the server for its models, and one of them for a word when that is wanted."""
        config = await self._preview()
        async with open_http(os.environ) as http:
            looked, names = await self._listed(http, config)
            model = await looked.choice(names)
            looked = replace(looked, model=model)
            if model is not None and await looked.wants_trial():
                await looked.tried(http, model)
        return looked

    async def _preview(self) -> Config:
        edits = edits_to_add(self.wanted, self.before)
        return await trio.to_thread.run_sync(self.editor.preview, edits)

    async def _listed(self, http: Http, config: Config) -> tuple[_Adding, list[str]]:
        """Return this with URL and format that the server answered to, and its models.

        A server that does not tell its models may still have some.
        """
        name = self.wanted.name
        if reason := config.unusable.get(name):
            raise CommandFailed(f"{name}: {reason}; or add it with --no-test", USAGE)
        provider = next(one for one in config.providers if one.name == name)
        aside(f"asking {provider.base_url} for its models")
        try:
            spoken = await find_format(http, provider, self.wanted.api)
        except ModelFailure as failure:
            await self._failed(failure, fatal=failure.kind in ("network", "auth", "billing"))
            return self, []
        found = spoken.provider
        if (found.base_url, found.api) != (self.wanted.base_url, self.wanted.api):
            aside(f"it speaks {found.api} at {found.base_url}")
        aside(f"it has {len(spoken.models)} models")
        wanted = replace(self.wanted, base_url=found.base_url, api=found.api)
        return replace(self, wanted=wanted), list(spoken.models)

    async def _failed(self, failure: ModelFailure, *, fatal: bool) -> None:
        """Tell a failure, and end here unless somebody wants to go on."""
        if not fatal:
            aside(f"note: {failure.message}")
            return
        if self.person is not None:
            aside(failure.message)
            if await self.person.agrees("add it all the same?", default=False):
                return
            raise CommandFailed("nothing was changed", FAILED)
        code = UNREACHABLE if failure.kind == "network" else FAILED
        raise CommandFailed(f"{failure.message}; nothing was changed (--no-test adds it)", code)

    async def choice(self, names: list[str]) -> str | None:
        """Return the model to try; None: not known."""
        model, told = self.model, self.arguments.model is not None
        if names and model not in names:
            if told:
                aside(f"note: the server does not list {model}")
            else:
                model = names[0]
        if self.person is None or told:
            return model
        return await ask_model(self.person, names, model or "") or None

    async def wants_trial(self) -> bool:
        if self.arguments.test or self.person is None:
            return bool(self.arguments.test)
        return await self.person.agrees("try it with one short request?", default=True)

    async def tried(self, http: Http, model: str) -> None:
        config = await self._preview()
        models = models_over(http, config.providers, os.environ, unusable=config.unusable)
        found, _ = await models.resolve(f"{self.wanted.name}/{model}")
        try:
            aside(told_trial(await try_model(found)))
        except ModelFailure as failure:
            await self._failed(failure, fatal=True)

    async def default(self) -> str | None:
        """Return the model that shall be the default of the configuration; None: as it is."""
        if self.arguments.default:
            if self.model is None:
                raise CommandFailed("--default: say which model, with --model", USAGE)
            return self.model
        if self.model is None or self.person is None:
            return None
        now = self.before.at("models.yaml", ("default",))
        question = f"make {self.wanted.name}/{self.model} the default"
        question += f" in place of {now}?" if now else "?"
        return self.model if await self.person.agrees(question, default=not now) else None


async def _begin(arguments: Namespace, person: Person | None) -> _Adding:
    """Take what was told, and ask for what was not."""
    name, url = arguments.name or "", arguments.url or ""
    key = await _key_told(arguments)
    if not name:
        if person is None:
            text = "models add: name a provider, as in: vaala models add anthropic"
            raise CommandFailed(text, USAGE)
        name, url = await ask_provider(person, os.environ)
    editor = open_editor()
    before = await trio.to_thread.run_sync(read_before, editor.directory)
    section, api = before.provider(name), arguments.api
    if not url:
        url, known_api = _known(name, section)
        api = api or known_api
    if key is None and person is not None:
        key = await ask_key(person, name, url, os.environ, kept=section is not None)
    elif key is None and section is None and name in PROVIDERS:
        key = _key_of_environ(name)
    return _Adding(arguments, editor, before, Wanted(name, bare_url(url), api, key), person)


def _known(name: str, section: Mapping[str, Any] | None) -> tuple[str, Api]:
    """Return URL and format of a provider that is there, or known."""
    if section is not None:
        return str(section.get("base_url", "")), section.get("api", "chat")
    if name in PROVIDERS:
        return PROVIDERS[name].url, PROVIDERS[name].api
    for server in LOCAL_SERVERS:
        if server.name == name:
            return server.provider.base_url, server.provider.api
    names = ", ".join((*PROVIDERS, *(server.name for server in LOCAL_SERVERS)))
    raise CommandFailed(f"{name}: say where it is, with --url; known are {names}", USAGE)


async def _key_told(arguments: Namespace) -> KeyAt | None:
    """Return where the options say that the key is; None: they do not."""
    told = [name for name in (*_KEY_OPTIONS, "key_stdin") if getattr(arguments, name)]
    if len(told) > 1:
        first, second = (f"--{name.replace('_', '-')}" for name in told[:2])
        raise CommandFailed(f"{first} and {second}: a provider has one key", USAGE)
    if not told:
        return None
    if told[0] != "key_stdin":
        return KeyAt(_KEY_OPTIONS[told[0]], _from_here(told[0], getattr(arguments, told[0])))
    if sys.stdin.isatty():
        raise CommandFailed("--key-stdin: pipe the key to it; without it you are asked", USAGE)
    data = await trio.to_thread.run_sync(sys.stdin.buffer.read, VALUE_BYTES_MAX + 1)
    key = data.decode("utf-8", "replace").strip()
    if not key or len(data) > VALUE_BYTES_MAX:
        what = "nothing came" if not key else f"more than {VALUE_BYTES_MAX} bytes came"
        raise CommandFailed(f"--key-stdin: {what}", USAGE)
    return KeyAt("api_key_secret", typed=Secret(key))


def _from_here(option: str, value: str) -> str:
    """Return a path as it is found from anywhere: in the configuration one begins elsewhere."""
    if option != "key_file" or value.startswith("~"):
        return value
    return os.path.abspath(value)


def _key_of_environ(name: str) -> KeyAt:
    variables = PROVIDERS[name].keys
    variable = next((one for one in variables if os.environ.get(one)), None)
    if variable is None:
        options = "--key-env, --key-file, --key-command, --key-keyring or --key-stdin"
        text = f"{name} needs a key: say where it is, with {options}, or set {variables[0]}"
        raise CommandFailed(text, USAGE)
    return KeyAt("api_key_env", variable)


async def _confirm(
    edits: Sequence[Edit], before: Before, person: Person | None, *, yes: bool
) -> None:
    """Tell what would be replaced or taken out, and raise `CommandFailed` unless that is wanted."""
    lines = list(changes(edits, before))
    for line in lines:
        aside(f"  {line}")
    if not lines or yes:
        return
    if person is None:
        raise CommandFailed("that would change; nobody can be asked: confirm with --yes", USAGE)
    if not await person.agrees("change that?", default=False):
        raise CommandFailed("nothing was changed", FAILED)


async def _write(editor: Editor, edits: Sequence[Edit], arguments: Namespace) -> None:
    """Make the edits and let a server that runs have them."""
    await trio.to_thread.run_sync(editor.apply, edits)
    for file in dict.fromkeys(edit.file for edit in edits):
        changed(editor.directory / file)
    try:
        async with find_server(arguments) as client:
            if client is not None:
                result = await client.ask(ReloadParams())
                for problem in result.problems:
                    aside(f"note: the server keeps the configuration before: {problem.text}")
    except CommandFailed as error:
        aside(f"note: the server does not have it yet: {error.message}")
