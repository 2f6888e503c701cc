"""`vaala completion`: scripts that complete commands, options and their values in a shell.

They are made from the table of commands and call nothing, so that a key press costs nothing.
"""

from __future__ import annotations

from argparse import Namespace

from vaala.cli.commands import COMMANDS, Argument, Command, Option
from vaala.cli.exits import DONE
from vaala.cli.standard import say


def main(arguments: Namespace) -> int:
    say({"bash": bash, "zsh": zsh, "fish": fish}[arguments.shell]().rstrip())
    return DONE


def _option_names(command: Command) -> list[str]:
    names = [name for option in command.options for name in (option.short, option.name) if name]
    return [*names, "--help"]


def _words(command: Command) -> tuple[str, ...]:
    return tuple(choice for argument in command.arguments for choice in argument.choices)


def _takes_files(command: Command) -> bool:
    return any(argument.complete for argument in command.arguments)


def bash() -> str:
    lines = [
        "# bash completion for vaala",
        "_vaala() {",
        '    local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        "    COMPREPLY=()",
        '    if [ "$COMP_CWORD" -eq 1 ]; then',
        f"        COMPREPLY=($(compgen -W '{_command_words()}' -- \"$word\"))",
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
        reply = f"COMPREPLY=($(compgen -W '{words}' -- \"$word\"))"
        files = ' ; COMPREPLY+=($(compgen -f -- "$word"))' if _takes_files(command) else ""
        lines.append(f"        {command.name}) {reply}{files} ;;")
    lines += ["    esac", "}", "complete -F _vaala vaala", ""]
    return "\n".join(lines)


def _bash_value(option: Option) -> str:
    if option.choices:
        return f"COMPREPLY=($(compgen -W '{' '.join(option.choices)}' -- \"$word\"))"
    if option.complete:
        kind = "-d" if option.complete == "directory" else "-f"
        return f'COMPREPLY=($(compgen {kind} -- "$word"))'
    return ":"


def zsh() -> str:
    lines = ["#compdef vaala", "_vaala() {", "    local -a commands", "    commands=("]
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
    value = ""
    if option.metavar:
        value = f":{option.metavar}:{_zsh_action(option.choices, option.complete)}"
    return _quote(f"{star}{option.name}[{help_text}]{value}")


def _zsh_words(argument: Argument) -> list[str]:
    action = _zsh_action(argument.choices, argument.complete)
    return [f":{argument.name}:{action}"] if action.strip() else []


def _zsh_action(choices: tuple[str, ...], complete: str) -> str:
    if choices:
        return f"({' '.join(choices)})"
    return {"file": "_files", "directory": "_files -/"}.get(complete, " ")


def fish() -> str:
    lines = ["# fish completion for vaala", "complete -c vaala -f"]
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
        lines += [f"complete -c vaala {seen} {_fish_option(option)}" for option in command.options]
    return "\n".join([*lines, ""])


def _fish_option(option: Option) -> str:
    parts = [f"-l {option.name.removeprefix('--')}"]
    if option.short:
        parts.append(f"-s {option.short.removeprefix('-')}")
    if option.choices:
        parts.append(f"-x -a {_quote(' '.join(option.choices))}")
    elif option.complete == "directory":
        parts.append("-x -a '(__fish_complete_directories)'")
    elif option.metavar:
        parts.append("-r" + (" -F" if option.complete else ""))
    return " ".join([*parts, f"-d {_quote(option.help)}"])


def _command_words() -> str:
    return " ".join((*(command.name for command in COMMANDS), "--help", "--version"))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
