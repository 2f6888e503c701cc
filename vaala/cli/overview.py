"""What `vaala --help`, `vaala --version` and bare `vaala` say."""

from __future__ import annotations

from vaala.cli.commands import COMMANDS
from vaala.version import VERSION


def help_text() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines = [
        "Usage: vaala COMMAND [ARGUMENTS] [OPTIONS]",
        "",
        "A local runtime for LLM agents: conversations that outlive every client and crash.",
        "",
        "Commands:",
        *(f"  {command.name:{width}}  {command.summary}" for command in COMMANDS),
        "",
        "Options:",
        "  -h, --help     show this, or the help of a command: vaala run --help",
        "  -V, --version  show the version",
        "",
        'Start with: vaala run "What is in this directory?"',
    ]
    return "\n".join(lines)


def next_steps() -> str:
    """What to do first, for someone who typed the name alone."""
    return "\n".join(
        (
            'vaala run "What is in this directory?"      ask an agent',
            'vaala run --model scripted "hello"          see it work without any model',
            'vaala run --continue "And now?"             go on where you were',
            "vaala list                                  what you did before",
            "vaala status                                what runs now, and what it waits for",
            "vaala --help                                everything else",
        )
    )


def version_text() -> str:
    return f"vaala {VERSION}"
