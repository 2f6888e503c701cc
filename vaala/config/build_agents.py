"""From agents.yaml to agent definitions: reads instructions, checks names of tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from io import BufferedReader
from pathlib import Path

from vaala.agent.definition import AgentDefinition, Budgets
from vaala.agent.fitting import Compaction
from vaala.config.build_options import option_problems
from vaala.config.check import did_you_mean, problem
from vaala.config.config import default_instructions
from vaala.config.document import Document
from vaala.config.errors import ConfigError, Problem
from vaala.config.limits import INSTRUCTIONS_BYTES_MAX
from vaala.config.read import Checked
from vaala.config.schema import AgentSection, AgentsFile
from vaala.named_file import open_regular
from vaala_protocol.settings import Settings


def build_agents(
    file: Checked[AgentsFile], tools: Sequence[str] | None, problems: list[Problem]
) -> dict[str, AgentDefinition]:
    """Return the agents; what is wrong with one goes to ``problems``.

    ``tools`` are the names of all tools, where they are known.
    """
    definitions: dict[str, AgentDefinition] = {}
    for name, section in file.values.root.items():
        try:
            definitions[name] = _agent(file.document, name, section)
        except ConfigError as error:
            problems.extend(error.problems)
        if tools is not None:
            problems.extend(_tool_problems(file.document, name, section, tools))
    return definitions


def _agent(document: Document, name: str, section: AgentSection) -> AgentDefinition:
    if faults := list(option_problems(document, (name, "options"), section.options)):
        raise ConfigError(faults)
    compaction = Compaction(**section.compaction.model_dump())
    if compaction.aim >= compaction.at:
        text = f"expected a number less than at, which is {compaction.at:g}, found {{}}"
        where = (name, "compaction", "aim")
        raise ConfigError([problem(document, where, text.format(f"{compaction.aim:g}"))])
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
        budgets=Budgets(**section.budgets.model_dump()),
        compaction=compaction,
    )


def _tool_problems(
    document: Document, name: str, section: AgentSection, tools: Sequence[str]
) -> Iterator[Problem]:
    for number, tool in enumerate(section.tools or ()):
        if tool not in tools:
            guess = did_you_mean(tool, tools) or f"; there are {', '.join(tools)}"
            text = f"no tool is called {tool!r}{guess}"
            yield problem(document, (name, "tools", number), text)


def _instructions(document: Document, name: str, section: AgentSection) -> str:
    way = (name, "instructions_file")
    if section.instructions_file is None:
        return section.instructions or default_instructions()
    if section.instructions is not None:
        raise ConfigError([problem(document, way, "stands beside instructions; keep one")])
    path = document.file.parent / Path(section.instructions_file).expanduser()
    try:
        with BufferedReader(open_regular(path)) as file:
            content = file.read(INSTRUCTIONS_BYTES_MAX + 1)
        text = content.decode("utf-8-sig").strip()
    except OSError as error:
        text = f"{path}: {error.strerror or error}"
        raise ConfigError([problem(document, way, text)]) from error
    except UnicodeDecodeError as error:
        raise ConfigError([problem(document, way, f"{path} is not UTF-8")]) from error
    except ValueError as error:
        raise ConfigError([problem(document, way, f"{str(path)!r} is no path")]) from error
    if len(content) > INSTRUCTIONS_BYTES_MAX:
        text = f"{path} is larger than {INSTRUCTIONS_BYTES_MAX} bytes"
        raise ConfigError([problem(document, way, text)])
    if not text:
        raise ConfigError([problem(document, way, f"{path} is empty")])
    return text
