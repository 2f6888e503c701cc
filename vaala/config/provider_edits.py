"""What has to be edited for a provider to be there, or to be gone; and what that changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from vaala.config.build_providers import KEYS
from vaala.config.concealed import MARK, conceal, is_secret
from vaala.config.document import parse_document, read_file
from vaala.config.edit import Edit
from vaala.config.yaml_text import Way
from vaala.models.provider import Api
from vaala.models.secret import Secret

PROVIDERS, SECRETS, MODELS = "providers.yaml", "secrets.yaml", "models.yaml"

KeyPlace: TypeAlias = Literal[
    "api_key_env", "api_key_file", "api_key_command", "api_key_keyring", "api_key_secret"
]


class KeyAt(Struct, frozen=True):
    """Where a key is, as providers.yaml says it; ``typed`` is the key itself, for secrets.yaml."""

    place: KeyPlace
    value: str = ""
    typed: Secret | None = None


class Wanted(Struct, frozen=True):
    """A provider as it shall be; what is None stays as it is."""

    name: str
    base_url: str
    api: Api | None = None
    key: KeyAt | None = None
    default: str | None = None
    """The model of it that shall be the default of the configuration."""


class Before(Struct, frozen=True):
    """What the files say now, by their names; an empty mapping for one that is not there."""

    files: Mapping[str, Any]

    def at(self, file: str, way: Way) -> Any:
        """Return the value at a place, None when there is none."""
        value = self.files.get(file)
        for step in way:
            value = value.get(step) if isinstance(value, Mapping) else None
        return value

    def provider(self, name: str) -> Mapping[str, Any] | None:
        section = self.at(PROVIDERS, (name,))
        return section if isinstance(section, Mapping) else None


def read_before(directory: Path) -> Before:
    """Read the files that a provider may be in; raises `ConfigError`. Blocks."""
    files = (directory / name for name in (PROVIDERS, SECRETS, MODELS))
    return Before({file.name: parse_document(file, read_file(file)).values for file in files})


def edits_to_add(wanted: Wanted, before: Before) -> list[Edit]:
    """Return the edits that make a provider what is wanted, in the order of writing.

    What a section has besides URL, format and key stays.
    """
    name, section = wanted.name, before.provider(wanted.name)
    values: dict[str, Any] = {"base_url": wanted.base_url}
    if wanted.api is not None and wanted.api != (section or {}).get("api", "chat"):
        values["api"] = wanted.api
    edits: list[Edit] = []
    if (key := wanted.key) is not None:
        value = key.value
        if key.typed is not None:
            value = _secret_name(name, before)
            edits.append(Edit(SECRETS, (value,), key.typed.reveal()))
        values[key.place] = value
    if section is None:
        edits.append(Edit(PROVIDERS, (name,), values))
    else:
        others = [one for one in KEYS if one in section and one not in values]
        gone: dict[str, Any] = dict.fromkeys(others if wanted.key is not None else ())
        changed = {**values, **gone}.items()
        edits += (Edit(PROVIDERS, (name, one), value) for one, value in changed)
    if wanted.default is not None:
        edits.append(Edit(MODELS, ("default",), f"{name}/{wanted.default}"))
    return edits


def edits_to_remove(name: str, before: Before) -> list[Edit]:
    """Return the edits that take a provider out, and what only it needs: its secret, and the
    default model and that of titles where they are its own."""
    edits = [
        Edit(MODELS, (role,), None)
        for role in ("default", "titles")
        if str(before.at(MODELS, (role,))).partition("/")[0] == name
    ]
    edits.append(Edit(PROVIDERS, (name,), None))
    secret = (before.provider(name) or {}).get("api_key_secret")
    users = _users_of(secret, before)
    if secret is not None and users == [name]:
        edits.append(Edit(SECRETS, (secret,), None))
    return edits


def changes(edits: Sequence[Edit], before: Before) -> Iterator[str]:
    """Yield a line for each value that edits replace or take out; secrets are not shown."""
    for edit in edits:
        old = before.at(edit.file, edit.way)
        if old is None or old == edit.value:
            continue
        place = f"{edit.file}: {'.'.join(map(str, edit.way))}"
        if edit.value is None:
            yield f"{place}: taken out"
        elif is_secret(edit.file, edit.way):
            yield f"{place}: {MARK} -> another one"
        else:
            shown = (conceal(edit.file, edit.way, one) for one in (old, edit.value))
            yield f"{place}: {' -> '.join(map(str, shown))}"


def _secret_name(name: str, before: Before) -> str:
    """Return under which name the key of a provider is kept; never that of another one's."""
    own = (before.provider(name) or {}).get("api_key_secret")
    candidate = own or name
    while any(user != name for user in _users_of(candidate, before)):
        candidate += "-key"
    return str(candidate)


def _users_of(secret: str | None, before: Before) -> list[str]:
    """Return the providers whose key is a secret."""
    providers = before.files.get(PROVIDERS) or {}
    return [
        name
        for name, section in providers.items()
        if isinstance(section, Mapping) and section.get("api_key_secret") == secret
    ]
