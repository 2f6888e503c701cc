"""Asks a person for what `vaala models add` was not told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from vaala.cli.person import Person
from vaala.config.provider_edits import KeyAt, KeyPlace
from vaala.models.choose import PROVIDERS
from vaala.models.client import is_near
from vaala.models.listing import LOCAL_SERVERS
from vaala.models.secret import Secret

MODELS_SHOWN_MAX = 30
_OTHER = "another"
_PLACES: Mapping[str, tuple[str, KeyPlace | None, str]] = {
    "type": ("typed here and kept in secrets.yaml, for your eyes only", "api_key_secret", ""),
    "variable": ("in a variable of the environment", "api_key_env", "name of the variable"),
    "command": ("printed by a command", "api_key_command", "command, as in: pass show models"),
    "file": ("in a file", "api_key_file", "path of the file"),
    "keyring": ("in the keyring of the system", "api_key_keyring", "SERVICE/USER"),
    "none": ("the server wants none", None, ""),
}


async def ask_provider(person: Person, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the name and the URL of a provider; the URL is empty for one that is known."""
    rows = [(name, _about(name, environ)) for name in PROVIDERS]
    rows += [(one.name, f"{one.title} on this machine") for one in LOCAL_SERVERS]
    rows.append((_OTHER, "any server that speaks the format of OpenAI, Anthropic or Gemini"))
    while True:
        answer = await person.choose("provider", rows, "")
        if answer.startswith(("http://", "https://")):
            return await person.ask("name for it", name_of(answer)), answer
        if answer == _OTHER:
            url = await person.ask("base URL")
            return await person.ask("name for it", name_of(url)), url
        if answer in dict(rows):
            return answer, ""


def _about(name: str, environ: Mapping[str, str]) -> str:
    known = PROVIDERS[name]
    variable = next((one for one in known.keys if environ.get(one)), None)
    return known.url + (f" ({variable} is set)" if variable else "")


def name_of(url: str) -> str:
    """Return a name for a server: what stands before the end of its host."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    if is_near(url):
        return "local"
    parts = host.split(".")
    return parts[-2] if len(parts) > 1 else host


async def ask_key(
    person: Person, name: str, url: str, environ: Mapping[str, str], *, kept: bool
) -> KeyAt | None:
    """Return where the key of a provider is; None: nowhere, or with ``kept`` where it was."""
    known = PROVIDERS.get(name)
    variables = () if known is None else known.keys
    variable = next((one for one in variables if environ.get(one)), "")
    rows = [(word, about) for word, (about, _, _) in _PLACES.items()]
    if kept:
        rows[-1] = ("keep", "leave it where it is")
    default = "keep" if kept else "variable" if variable else "none" if is_near(url) else "type"
    while True:
        word = await person.choose("key", rows, default)
        if word not in dict(rows):
            continue
        _, place, question = _PLACES.get(word, ("", None, ""))
        if place is None:
            return None
        if place == "api_key_secret":
            if key := await person.ask_hidden(f"key of {name}"):
                return KeyAt(place, typed=Secret(key))
        elif value := await person.ask(question, variable if place == "api_key_env" else ""):
            return KeyAt(place, value)


async def ask_model(person: Person, names: Sequence[str], default: str) -> str:
    """Return the model of a provider that shall be tried, and may become the default."""
    if not names:
        return await person.ask("model, by its name at the server", default)
    shown = list(names[:MODELS_SHOWN_MAX])
    if default in names and default not in shown:
        shown.insert(0, default)
    more = len(names) - len(shown)
    question = f"model ({more} more are not shown)" if more > 0 else "model"
    return await person.choose(question, [(one, "") for one in shown], default)
