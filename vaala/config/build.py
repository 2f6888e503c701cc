"""From checked files to `Config`: looks up keys, reads instructions, fills in what is shipped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar, cast

from pydantic import BaseModel

from vaala.agent.definition import AgentDefinition, Budgets
from vaala.config.check import check, did_you_mean, problem
from vaala.config.config import DEFAULT_AGENT, Config, default_agent, default_instructions
from vaala.config.document import Document, empty_document, read_document
from vaala.config.errors import ConfigError, Problem
from vaala.config.limits import INSTRUCTIONS_BYTES_MAX
from vaala.config.schema import (
    AgentSection,
    AgentsFile,
    ModelsFile,
    ProviderSection,
    ProvidersFile,
)
from vaala.models.base import Deadlines
from vaala.models.provider import Provider
from vaala.models.secret import Secret
from vaala_protocol.settings import Settings

M = TypeVar("M", bound=BaseModel)
Way: TypeAlias = tuple[str | int, ...]


def build_config(
    directory: Path, environ: Mapping[str, str], tools: Sequence[str] | None
) -> Config:
    """Read, check and build; raises `ConfigError` with the problems of all files."""
    problems: list[Problem] = []

    def read(name: str, schema: type[M]) -> tuple[Document, M] | None:
        try:
            document = read_document(directory / name) or empty_document(directory / name)
            return document, check(document, schema)
        except ConfigError as error:
            problems.extend(error.problems)
            return None

    providers = read("providers.yaml", ProvidersFile)
    models = read("models.yaml", ModelsFile)
    agents = read("agents.yaml", AgentsFile)
    definitions = _agents(*agents, problems) if agents else {}
    if agents and tools is not None:
        problems.extend(_tool_problems(*agents, tools))
    if providers:
        problems.extend(_key_problems(*providers))
    if problems or providers is None or models is None:
        raise ConfigError(problems)
    sections = providers[1].root
    return Config(
        directory=directory,
        agents={DEFAULT_AGENT: default_agent(), **definitions},
        providers=tuple(_provider(name, section, environ) for name, section in sections.items()),
        default_model=models[1].default,
        unusable=_unusable(sections, environ),
        key_variables=tuple(
            section.api_key_env for section in sections.values() if section.api_key_env
        ),
    )


def _provider(name: str, section: ProviderSection, environ: Mapping[str, str]) -> Provider:
    key = section.api_key or environ.get(section.api_key_env or "")
    limits = section.deadlines.model_dump(exclude_none=True)
    return Provider(
        name=name,
        base_url=section.base_url.rstrip("/"),
        api=section.api,
        key=Secret(key) if key else None,
        headers={header: Secret(value) for header, value in section.headers.items()},
        models=tuple(section.models),
        windows=dict(section.windows),
        deadlines=Deadlines(**limits),
        url_from="providers.yaml",
        key_from=section.api_key_env or "providers.yaml",
    )


def _key_problems(document: Document, file: ProvidersFile) -> list[Problem]:
    return [
        problem(document, (name, "api_key"), "stands beside api_key_env; keep one of the two")
        for name, section in file.root.items()
        if section.api_key is not None and section.api_key_env is not None
    ]


def _tool_problems(document: Document, file: AgentsFile, tools: Sequence[str]) -> Iterator[Problem]:
    for name, section in file.root.items():
        for number, tool in enumerate(section.tools or ()):
            if tool not in tools:
                guess = did_you_mean(tool, tools) or f"; there are {', '.join(tools)}"
                text = f"no tool is called {tool!r}{guess}"
                yield problem(document, (name, "tools", number), text)


def _unusable(
    sections: Mapping[str, ProviderSection], environ: Mapping[str, str]
) -> dict[str, str]:
    """A missing key is no problem of the file: another provider may be the one that is used."""
    return {
        name: f"the environment variable {section.api_key_env} is not set"
        for name, section in sections.items()
        if section.api_key_env is not None and not environ.get(section.api_key_env)
    }


def _agents(
    document: Document, file: AgentsFile, problems: list[Problem]
) -> dict[str, AgentDefinition]:
    definitions: dict[str, AgentDefinition] = {}
    for name, section in file.root.items():
        try:
            definitions[name] = _agent(document, name, section)
        except ConfigError as error:
            problems.extend(error.problems)
    return definitions


def _agent(document: Document, name: str, section: AgentSection) -> AgentDefinition:
    unusable = list(_not_json((name, "options"), section.options))
    if unusable:
        text = "expected text, a number, true, false, null, a list or a mapping, found {}"
        raise ConfigError([problem(document, way, text.format(what)) for way, what in unusable])
    return AgentDefinition(
        name=name,
        description=section.description,
        instructions=_instructions(document, name, section),
        settings=Settings(
            model=section.model,
            effort=section.effort,
            mode=section.mode,
            options=dict(section.options),
        ),
        tools=None if section.tools is None else tuple(section.tools),
        budgets=Budgets(**section.budgets.model_dump(exclude_none=True)),
    )


def _not_json(way: Way, value: object) -> Iterator[tuple[Way, str]]:
    """Yield the place of each value that no request can carry, and what it is."""
    match value:
        case dict():
            for key, one in cast("dict[object, object]", value).items():
                if isinstance(key, str):
                    yield from _not_json((*way, key), one)
                else:
                    yield way, f"the key {key!r}, which is no text"
        case list():
            for number, one in enumerate(cast("list[object]", value)):
                yield from _not_json((*way, number), one)
        case float() if not math.isfinite(value):
            yield way, f"the number {value}"
        case None | str() | int() | float():
            pass
        case _:
            yield way, f"{type(value).__name__} {value}"


def _instructions(document: Document, name: str, section: AgentSection) -> str:
    way = (name, "instructions_file")
    if section.instructions_file is None:
        return section.instructions or default_instructions()
    if section.instructions is not None:
        raise ConfigError([problem(document, way, "stands beside instructions; keep one")])
    path = document.file.parent / Path(section.instructions_file).expanduser()
    try:
        with path.open("rb") as file:
            content = file.read(INSTRUCTIONS_BYTES_MAX + 1)
        text = content.decode("utf-8-sig").strip()
    except OSError as error:
        raise ConfigError([problem(document, way, f"{path}: {error.strerror}")]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([problem(document, way, f"{path} is not UTF-8")]) from error
    if len(content) > INSTRUCTIONS_BYTES_MAX:
        text = f"{path} is larger than {INSTRUCTIONS_BYTES_MAX} bytes"
        raise ConfigError([problem(document, way, text)])
    if not text:
        raise ConfigError([problem(document, way, f"{path} is empty")])
    return text
