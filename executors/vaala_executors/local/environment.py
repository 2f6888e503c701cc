"""The environment of a command: nothing in it waits for a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

NON_INTERACTIVE: Mapping[str, str] = {
    # Output goes to a program: no pager, and no escape sequences from tools that ask TERM.
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    # Should a program start less all the same: quit at the end, do not clear the screen.
    "LESS": "FRX",
    # An editor that succeeds at once, so that `git rebase --continue` takes the text as it is.
    # git knows ":" and starts nothing for it; other programs need one that exists.
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "EDITOR": "true",
    "VISUAL": "true",
    # No password prompts: neither on a terminal nor in a window.
    "GIT_TERMINAL_PROMPT": "0",
    "SSH_ASKPASS_REQUIRE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
}
"""No NO_COLOR: tools see a pipe anyway, and a project's own tests of colours would change."""

PTY_TERM = "xterm-256color"
"""With a PTY somebody drives a terminal, and programs that need one refuse `dumb`."""


def base_environment(environ: Mapping[str, str], strip: Iterable[str]) -> dict[str, str]:
    """Return what every command inherits: ``environ`` without the names in ``strip``."""
    withheld = frozenset(strip)
    kept = {name: value for name, value in environ.items() if name not in withheld}
    return {**kept, **NON_INTERACTIVE}


def command_environment(
    base: Mapping[str, str], overlay: Mapping[str, str | None], *, directory: str, pty: bool
) -> dict[str, str]:
    """Return the environment of one command; ``overlay`` wins over all else, None unsets."""
    terminal = {"TERM": PTY_TERM} if pty else {}
    merged = {**base, **terminal, "PWD": directory, **overlay}
    return {name: value for name, value in merged.items() if value is not None}
