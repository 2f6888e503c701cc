"""`vaala completion`: scripts that complete commands, options and their values in a shell.

They are made from the table of commands, so that a key press costs nothing; only where the id of a
conversation is wanted `vaala list` is called.
"""

from __future__ import annotations

from argparse import Namespace

from vaala.cli.commands import COMMANDS, Argument, Command, Option
from vaala.cli.exits import DONE
from vaala.cli.standard import say

_IDS = "vaala list --limit 50 2>/dev/null | grep -oE '^[0-9a-f-]{13,}'"
_AGENTS = (
    "{ echo default; sed -n 's/^\\([A-Za-z0-9][A-Za-z0-9._-]*\\):.*/\\1/p' "
    '"${XDG_CONFIG_HOME:-$HOME/.config}/vaala/agents.yaml" 2>/dev/null; }'
)
_FILES = ("file", "directory")


def main(arguments: Namespace) -> int:
    say({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell]().rstrip())
    return DONE


def _option_names(command: Command) -> list[str]:
    names = [name for option in command.options for name in (option.short, option.name) if name]
    return [*names, "--help"]


def _words(command: Command) -> tuple[str, ...]:
    return tuple(choice for argument in command.arguments for choice in argument.choices)


def _takes_files(command: Command) -> bool:
    return _completes(command, *_FILES)


def _completes(command: Command, *kinds: str) -> bool:
    return any(argument.complete in kinds for argument in command.arguments)


_BASH_HEAD = f"""# bash completion for vaala
_vaala_words() {{
    COMPREPLY+=($(compgen -W "$1" -- "$word"))
}}
_vaala_files() {{
    local IFS=$'\\n'
    compopt -o filenames 2>/dev/null
    COMPREPLY+=($(compgen "$1" -- "$word"))
}}
_vaala_ids() {{
    _vaala_words "$({_IDS})"
}}
_vaala_agents() {{
    _vaala_words "$({_AGENTS})"
}}
_vaala() {{
    local word="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}"
    # bash takes --name=value for three words.
    if [ "$word" = "=" ]; then
        word=""
    elif [ "$before" = "=" ]; then
        before="${{COMP_WORDS[COMP_CWORD-2]}}"
    fi
    COMPREPLY=()"""


def bash() -> str:
    lines = [
        *_BASH_HEAD.split("\n"),
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        _vaala_words '{_command_words()}'",
        "        return",
        "    fi",
        '    case "${COMP_WORDS[1]} $before" in',
    ]
    for command in COMMANDS:
        for option in command.options:
            if option.metavar:
                names = filter(None, (option.short, option.name))
                pattern = "|".join(f'"{command.name} {name}"' for name in names)
                lines.append(f"        {pattern}) {_bash_value(option)}; return ;;")
    lines += ["    esac", '    case "${COMP_WORDS[1]}" in']
    for command in COMMANDS:
        words = " ".join((*_option_names(command), *_words(command)))
        reply = f"_vaala_words '{words}'"
        files = "; _vaala_files -f" if _takes_files(command) else ""
        # Asking for ids takes a moment: not while an option is being written.
        ids = '; [[ "$word" = -* ]] || _vaala_ids' if _completes(command, "conversation") else ""
        lines.append(f"        {command.name}) {reply}{ids}{files} ;;")
    lines.append(f"        help) _vaala_words '{_command_words()}' ;;")
    lines += ["    esac", "}", "complete -F _vaala vaala", ""]
    return "\n".join(lines)


def _bash_value(option: Option) -> str:
    if words := option.choices or option.words:
        return f"_vaala_words '{' '.join(words)}'"
    return {
        "directory": "_vaala_files -d",
        "file": "_vaala_files -f",
        "conversation": "_vaala_ids",
        "agent": "_vaala_agents",
    }.get(option.complete, ":")


def zsh() -> str:
    lines = [
        "#compdef vaala",
        f'_vaala_ids() {{ compadd -- ${{(f)"$({_IDS})"}} }}',
        f'_vaala_agents() {{ compadd -- ${{(f)"$({_AGENTS})"}} }}',
        "_vaala() {",
        "    local -a commands",
        "    commands=(",
        "        'help:show the help of a command'",
    ]
    lines += [f"        {_quote(f'{command.name}:{command.summary}')}" for command in COMMANDS]
    lines += [
        "    )",
        "    if (( CURRENT == 2 )); then",
        "        _describe command commands",
        "        return",
        "    fi",
        "    local command=$words[2]",
        "    shift words",
        "    (( CURRENT-- ))",
        '    case "$command" in',
    ]
    for command in COMMANDS:
        specs = [_zsh_option(option) for option in command.options]
        specs += [_quote(spec) for argument in command.arguments for spec in _zsh_words(argument)]
        joined = " \\\n            ".join(["_arguments", *specs])
        lines.append(f"        {command.name})\n            {joined} ;;")
    lines += ["    esac", "}", "compdef _vaala vaala", ""]
    return "\n".join(lines)


def _zsh_option(option: Option) -> str:
    help_text = option.help.replace("[", "(").replace("]", ")").replace(":", " ")
    star = "*" if option.repeat else ""
    value, equals = "", ""
    if option.metavar:
        equals = "="
        value = f":{option.metavar}:{_zsh_action(option.choices or option.words, option.complete)}"
    return _quote(f"{star}{option.name}{equals}[{help_text}]{value}")


def _zsh_words(argument: Argument) -> list[str]:
    action = _zsh_action(argument.choices, argument.complete)
    return [f":{argument.name}:{action}"] if action.strip() else []


def _zsh_action(choices: tuple[str, ...], complete: str) -> str:
    if choices:
        return f"({' '.join(choices)})"
    return {
        "file": "_files",
        "directory": "_files -/",
        "conversation": "_vaala_ids",
        "agent": "_vaala_agents",
    }.get(complete, " ")


def fish() -> str:
    lines = [
        "# fish completion for vaala",
        "complete -c vaala -f",
        "complete -c vaala -n __fish_use_subcommand -a help -d 'show the help of a command'",
    ]
    for command in COMMANDS:
        lines.append(
            f"complete -c vaala -n __fish_use_subcommand -a {command.name} "
            f"-d {_quote(command.summary)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.name}'"
        if words := _words(command):
            lines.append(f"complete -c vaala {seen} -a {_quote(' '.join(words))}")
        if _takes_files(command):
            lines.append(f"complete -c vaala {seen} -F")
        if _completes(command, "conversation"):
            lines.append(f"complete -c vaala {seen} -a {_quote(f'({_IDS})')}")
        lines += [f"complete -c vaala {seen} {_fish_option(option)}" for option in command.options]
    return "\n".join([*lines, ""])


def _fish_option(option: Option) -> str:
    parts = [f"-l {option.name.removeprefix('--')}"]
    if option.short:
        parts.append(f"-s {option.short.removeprefix('-')}")
    if words := option.choices or option.words:
        parts.append(f"-x -a {_quote(' '.join(words))}")
    elif option.complete == "directory":
        parts.append("-x -a '(__fish_complete_directories)'")
    elif option.complete == "conversation":
        parts.append(f"-x -a {_quote(f'({_IDS})')}")
    elif option.complete == "agent":
        parts.append(f"-x -a {_fish_quote(f'(sh -c {_fish_quote(_AGENTS)})')}")
    elif option.metavar:
        parts.append("-r" + (" -F" if option.complete == "file" else ""))
    return " ".join([*parts, f"-d {_quote(option.help)}"])


def _command_words() -> str:
    return " ".join((*(command.name for command in COMMANDS), "help", "--help", "--version"))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _fish_quote(text: str) -> str:
    """Quote for fish, which knows two escapes between single quotes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
