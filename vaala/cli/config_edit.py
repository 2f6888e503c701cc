"""`vaala config edit`: a file in the user's editor, checked before it takes the old one's place."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from vaala.cli.exits import FAILED, UNREACHABLE, USAGE, CommandFailed
from vaala.cli.standard import aside
from vaala.config.document import read_file
from vaala.config.edit import Editor
from vaala.config.errors import ConfigError
from vaala.config.init import starter
from vaala.config.replace_file import Changed

_EDITORS = ("editor", "nano", "vi")
"""What is tried when no variable names an editor."""


def edit(editor: Editor, name: str) -> bool:
    """Let a person edit a file; True when it was changed. Raises `CommandFailed`.

    What is wrong is told, and edited again or dropped: a file with problems never takes the place
    of the old one. When somebody else changes the file meanwhile, the copy is kept and named.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        text = f"an editor needs a terminal; without one: vaala config set {name} KEY VALUE"
        raise CommandFailed(text, USAGE)
    command = _command()
    before = read_file(editor.directory / name)
    begun = starter(name) if before is None else before
    with tempfile.TemporaryDirectory(prefix="vaala-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / name
        copy.touch(0o600)
        copy.write_bytes(begun)
        while True:
            _run([*command, str(copy)])
            after = copy.read_bytes()
            if after == begun:
                aside("nothing was changed")
                return False
            try:
                editor.replace(name, before, after)
            except ConfigError as error:
                if not _again(error):
                    return False
            except Changed:
                raise CommandFailed(_kept(editor.directory / name, after), FAILED) from None
            else:
                return True


def _command() -> list[str]:
    for variable in ("VISUAL", "EDITOR"):
        try:
            if words := shlex.split(os.environ.get(variable, "")):
                return words
        except ValueError as error:
            raise CommandFailed(f"{variable}: {error}", USAGE) from error
    for name in _EDITORS:
        if found := shutil.which(name):
            return [found]
    raise CommandFailed("no editor: set VISUAL or EDITOR to one", USAGE)


def _run(command: list[str]) -> None:
    """Run the editor to its end; a Ctrl-C in it is its own."""
    try:
        process = subprocess.Popen(command)
    except OSError as error:
        text = f"the editor {command[0]} cannot be started: {error.strerror}"
        raise CommandFailed(text, UNREACHABLE) from error
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            continue
    if code:
        raise CommandFailed(f"the editor ended with {code}; nothing was changed", FAILED)


def _again(error: ConfigError) -> bool:
    """Tell what is wrong and ask what to do; False: the change is dropped."""
    for problem in error.problems:
        aside(str(problem))
    while True:
        aside("e: edit again, d: drop the change")
        answer = sys.stdin.readline()
        if answer.strip().lower() in ("e", "edit"):
            return True
        if not answer or answer.strip().lower() in ("d", "drop"):
            aside("dropped; the file is as it was")
            return False


def _kept(file: Path, content: bytes) -> str:
    descriptor, name = tempfile.mkstemp(prefix=f"{file.stem}-", suffix=".yaml")
    with os.fdopen(descriptor, "wb") as opened:
        opened.write(content)
    return f"{file} was changed by somebody else meanwhile; your text is in {name}"
