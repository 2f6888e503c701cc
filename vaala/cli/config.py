"""`vaala config`: checks, shows and changes the configuration. All of it works without a server."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any, cast

from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import mapped
from vaala.cli.standard import aside, say
from vaala.config.concealed import is_secret
from vaala.config.edit import Editor
from vaala.config.errors import ConfigError
from vaala.config.key_text import key_text, parse_key
from vaala.config.load import FILES, load_config
from vaala.config.public import Shown, effective_values, public_values
from vaala.paths import config_directory
from vaala.tools.builtin import builtin_tools
from vaala_protocol.errors import Refused

VALUE_BYTES_MAX = 64 * 1024


def main(arguments: Namespace) -> int:
    action = {
        "check": _check,
        "show": _show,
        "set": _set,
        "edit": _edit,
        "path": _path,
        "schema": _schema,
    }[arguments.action]
    try:
        return action(arguments)
    except (ConfigError, Refused) as error:
        raise mapped(error) from error


def open_editor() -> Editor:
    return Editor(config_directory(os.environ), os.environ, builtin_tools().names)


def changed(file: Path) -> None:
    """A file was changed, and is in force for whatever starts from now on."""
    aside(f"changed {file}")


def _check(arguments: Namespace) -> int:
    _only(arguments, 0)
    editor = open_editor()
    try:
        config = load_config(editor.directory, editor.environ, tools=editor.tools)
    except ConfigError as error:
        for problem in error.problems:
            say(str(problem))
        return USAGE
    for remark in config.remarks:
        aside(f"note: {remark}")
    there = sum((editor.directory / name).exists() for name in FILES)
    say(
        f"good: {there} files in {editor.directory}" if there else f"no files in {editor.directory}"
    )
    return DONE


def _show(arguments: Namespace) -> int:
    _only(arguments, 2)
    editor = open_editor()
    names = FILES if arguments.file is None else (editor.file(arguments.file).name,)
    for name in names:
        path = editor.directory / name
        way = parse_key(arguments.key, public_values(path, ())) if arguments.key else ()
        shown = list(effective_values(editor.directory, name, way))
        if arguments.json:
            for one in shown:
                say(json.dumps(_as_json(one), ensure_ascii=False))
        elif shown:
            say("\n".join([name, *_table(shown)]))
    return DONE


def _as_json(shown: Shown) -> dict[str, Any]:
    return {
        "file": shown.file, "key": list(shown.way), "value": shown.value, "line": shown.line,
    }  # fmt: skip


def _table(shown: list[Shown]) -> list[str]:
    rows = [
        (key_text(one.way), json.dumps(one.value, ensure_ascii=False, default=str),
         "default" if one.line is None else f"{one.file}:{one.line}")
        for one in shown
    ]  # fmt: skip
    keys = max(len(key) for key, _, _ in rows)
    return [f"  {key:{keys}}  {value}  ({source})" for key, value, source in rows]


def _set(arguments: Namespace) -> int:
    if arguments.key is None or (arguments.value is None) != arguments.delete:
        raise CommandFailed("write vaala config set FILE KEY VALUE, or FILE KEY --delete", USAGE)
    editor = open_editor()
    file = editor.file(arguments.file)
    way = parse_key(arguments.key, public_values(file, ()))
    value = None if arguments.delete else _value(arguments.value, file.name, way)
    try:
        editor.set(file.name, way, value)
    except ConfigError as error:
        problems = "\n  ".join(map(str, error.problems))
        text = f"not changed; the configuration would have problems:\n  {problems}"
        raise CommandFailed(text, USAGE) from error
    changed(file)
    return DONE


def _value(text: str, file: str, way: tuple[str | int, ...]) -> Any:
    """Return the value that is to be set; a secret is text whatever it looks like."""
    secret = is_secret(file, way)
    if text == "-":
        data = sys.stdin.buffer.read(VALUE_BYTES_MAX + 1)
        if len(data) > VALUE_BYTES_MAX:
            raise CommandFailed(f"stdin: more than {VALUE_BYTES_MAX} bytes", USAGE)
        text = data.decode("utf-8", "replace").strip()
    elif secret:
        text = "others can see a secret on the command line: write - and give it on stdin"
        raise CommandFailed(text, USAGE)
    if secret:
        return text
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        value = YAML(typ="safe").load(text)
        json.dumps(value, allow_nan=False)
    except (YAMLError, TypeError, ValueError) as error:
        raise CommandFailed(f"{text!r} is no value in YAML; put quotes around it", USAGE) from error
    if value is None:
        raise CommandFailed("there is no value; to take the key out write --delete", USAGE)
    return value


def _edit(arguments: Namespace) -> int:
    _only(arguments, 1)
    if arguments.file is None:
        raise CommandFailed(f"name a file: {', '.join(FILES)}", USAGE)
    from vaala.cli.config_edit import edit

    editor = open_editor()
    name = editor.file(arguments.file).name
    if edit(editor, name):
        changed(editor.directory / name)
    return DONE


def _path(arguments: Namespace) -> int:
    _only(arguments, 1)
    editor = open_editor()
    say(str(editor.directory if arguments.file is None else editor.file(arguments.file)))
    return DONE


def _schema(arguments: Namespace) -> int:
    _only(arguments, 1)
    from vaala.config.json_schema import json_schema

    if arguments.file is None:
        shown: Any = {name: json_schema(name) for name in FILES}
    else:
        shown = json_schema(open_editor().file(arguments.file).name)
    say(json.dumps(shown, indent=2))
    return DONE


def _only(arguments: Namespace, count: int) -> None:
    """Refuse more words than an action takes, and the option of another one."""
    given = [arguments.file, arguments.key, arguments.value]
    if any(word is not None for word in given[count:]):
        word = cast("str", next(word for word in given[count:] if word is not None))
        raise CommandFailed(f"config {arguments.action}: one word too many: {word!r}", USAGE)
    if arguments.delete:
        raise CommandFailed(f"config {arguments.action} takes no --delete", USAGE)
