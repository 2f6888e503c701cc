"""Where the prompts of `vaala run` come from: words, stdin, or a file with several."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from vaala.cli.exits import UNREACHABLE, USAGE, CommandFailed
from vaala.limits import INPUT_BYTES_MAX

STDIN = "-"
SEPARATOR = "---"
FILE_BYTES_MAX = 16 * 1024 * 1024
_WAY_OUT = "put what is long into a file, and name the file in the prompt"


def read_prompts(arguments: Namespace) -> list[str]:
    """Return the prompts, at least one and none of them blank; raises `CommandFailed`.

    stdin is read only when it is asked for or nothing else is given: a run inside a shell loop
    must not eat the loop's input.
    """
    words: list[str] = arguments.prompt
    if arguments.prompts is not None:
        if words:
            raise CommandFailed("give a prompt or --prompts, not both", USAGE)
        prompts = split_prompts(_read_file(arguments.prompts))
        if not prompts:
            raise CommandFailed(f"--prompts {arguments.prompts}: no prompt in it", USAGE)
    elif words:
        prompts = ["\n\n".join(filter(None, _with_stdin(words)))]
    elif sys.stdin.isatty():
        text = 'no prompt: write one, as in vaala run "What is here?", or pipe one to stdin'
        raise CommandFailed(text, USAGE)
    else:
        prompts = [_read_stdin()]
    for prompt in prompts:
        _check(prompt)
    return prompts


def split_prompts(text: str) -> list[str]:
    """Split at lines of ``---``; in a text without any, each line is a prompt."""
    lines = text.split("\n")
    if not any(line.rstrip() == SEPARATOR for line in lines):
        return [line.strip() for line in lines if line.strip()]
    prompts: list[list[str]] = [[]]
    for line in lines:
        if line.rstrip() == SEPARATOR:
            prompts.append([])
        else:
            prompts[-1].append(line)
    joined = ("\n".join(prompt).strip() for prompt in prompts)
    return [prompt for prompt in joined if prompt]


def _with_stdin(words: list[str]) -> list[str]:
    """Join the words with spaces; ``-`` is replaced by what comes on stdin, once."""
    if STDIN not in words:
        return [" ".join(words)]
    place = words.index(STDIN)
    before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
    return [before, _read_stdin(), after]


def _read_stdin() -> str:
    return _decode(sys.stdin.buffer.read(FILE_BYTES_MAX + 1), "stdin").strip("\n")


def _read_file(name: str) -> str:
    if name == STDIN:
        return _read_stdin()
    try:
        with Path(name).open("rb") as file:
            return _decode(file.read(FILE_BYTES_MAX + 1), name)
    except OSError as error:
        raise CommandFailed(f"--prompts {name}: {error.strerror}", UNREACHABLE) from error


def _decode(data: bytes, name: str) -> str:
    if len(data) > FILE_BYTES_MAX:
        text = f"{name} has more than {FILE_BYTES_MAX:,} bytes, and one prompt at most "
        raise CommandFailed(text + f"{INPUT_BYTES_MAX:,}; {_WAY_OUT}", USAGE)
    return data.decode("utf-8-sig", "replace")


def _check(prompt: str) -> None:
    if not prompt.strip():
        raise CommandFailed("the prompt is empty", USAGE)
    if (size := len(prompt.encode("utf-8", "replace"))) > INPUT_BYTES_MAX:
        text = f"the prompt has {size:,} bytes, at most {INPUT_BYTES_MAX:,} can be sent; "
        raise CommandFailed(text + _WAY_OUT, USAGE)
