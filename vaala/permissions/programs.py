"""What is known of programs: which run other commands, which have subcommands, and which options
make one that reads write a file or run a command.

Sources: the manual pages of the programs, and gtfobins.github.io for how they are misused. What is
not listed here is taken for what it says: a rule that names a program covers all its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from vaala.permissions.shell import SimpleCommand, Word

RUNNERS = frozenset(
    {
        # Shells and interpreters: their arguments are code.
        "bash", "sh", "dash", "zsh", "ksh", "fish", "busybox", "python", "python2", "python3",
        "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "mawk", "osascript",
        "Rscript", "tclsh", "expect", "gdb", "ed", "ex", "vi", "vim", "emacs", "sqlite3", "psql",
        "sed", "tar",
        # Their arguments are another command.
        "sudo", "doas", "su", "env", "xargs", "parallel", "nohup", "setsid", "nice", "ionice",
        "timeout", "time", "stdbuf", "watch", "strace", "ltrace", "script", "chroot", "unshare",
        "nsenter", "flock", "ssh", "eval", "exec", "command", "builtin", "source", ".", "trap",
        "entr", "npx", "pnpx", "bunx", "uvx", "pipx", "make", "docker", "podman", "kubectl",
    }
)  # fmt: skip
"""No rule covers all that one of these may be given: it would cover every command."""

SUBCOMMANDS: Mapping[str, int] = MappingProxyType(
    {
        "git": 2, "gh": 2, "cargo": 2, "go": 2, "npm": 2, "pnpm": 2, "yarn": 2, "pip": 2, "pip3": 2,
        "uv": 2, "poetry": 2, "conda": 2, "brew": 2, "apt": 2, "apt-get": 2, "systemctl": 2,
        "dotnet": 2, "bundle": 2, "rails": 2, "composer": 2, "helm": 2, "terraform": 2,
        "gradle": 2, "mvn": 2, "rustup": 2, "swift": 2,
    }
)  # fmt: skip
"""How many words say what such a program does."""

_SCRIPT_RUNNERS = ("npm", "pnpm", "yarn")
"""Their ``run`` names a script of the project, and not a program."""
_RUN_WORDS = frozenset({"exec", "run", "dlx", "x", "foreach", "bisect", "tool"})
"""Subcommands whose arguments are another command."""


class _Guard(Struct, frozen=True):
    """Options that a rule does not cover unless it names them itself."""

    long: Sequence[str] = ()
    """With two dashes; an abbreviation counts as well, as getopt_long takes it."""
    short: str = ""
    """Letters; also in a bundle such as ``-rn``, and with the value joined on."""
    words: Sequence[str] = ()
    """Whole words, such as those of find."""
    prefixes: Sequence[str] = ()
    """How such a word begins."""
    dashes_end: bool = True
    """Behind ``--`` nothing is an option any more."""


_GUARDS: Mapping[str, _Guard] = MappingProxyType(
    {
        "git": _Guard(
            long=(
                "output", "output-directory", "ext-diff", "textconv", "open-files-in-pager", "exec",
                "upload-pack", "receive-pack", "exec-path", "config-env", "git-dir", "work-tree",
                "template", "config", "upload-archive", "gpg-sign", "filter-process", "tool",
                "extcmd", "strategy", "interactive", "edit-description",
            ),
            words=("-c", "-C"),
            prefixes=("-O",),
        ),
        "find": _Guard(
            words=("-exec", "-execdir", "-ok", "-okdir", "-delete", "-fls"),
            prefixes=("-fprint",),
            dashes_end=False,
        ),
        "fd": _Guard(long=("exec", "exec-batch"), short="xX"),
        "rg": _Guard(long=("pre", "hostname-bin")),
        "sort": _Guard(
            long=("output", "compress-program", "temporary-directory", "files0-from"), short="oT"
        ),
        "tree": _Guard(short="oR"),
        "tar": _Guard(
            long=(
                "checkpoint-action", "to-command", "use-compress-program", "rsh-command",
                "info-script", "new-volume-script", "absolute-names", "unlink-first", "overwrite",
                "directory",
            ),
            short="IFPC",
        ),
        "date": _Guard(long=("set",), short="s"),
        "file": _Guard(long=("compile", "magic-file"), short="Cm"),
        "less": _Guard(
            long=("log-file", "LOG-FILE", "lesskey-src", "lesskey-content"), short="oOk"
        ),
        "man": _Guard(long=("pager", "html", "preprocessor"), short="PHp"),
        "curl": _Guard(
            long=(
                "output", "remote-name", "remote-name-all", "output-dir", "config", "upload-file",
                "data", "data-binary", "data-raw", "data-urlencode", "form", "request", "json",
                "dump-header", "cookie-jar", "trace", "trace-ascii", "stderr", "netrc-file",
                "proxy", "unix-socket", "create-dirs", "etag-save", "libcurl", "post301",
            ),
            short="oOKTdFXDcJ",
            dashes_end=False,
        ),
        "wget": _Guard(
            long=(
                "output-document", "output-file", "append-output", "execute", "post-data",
                "post-file", "body-data", "body-file", "method", "use-askpass", "config",
                "directory-prefix", "input-file", "warc-file", "rejected-log",
            ),
            short="OoaePi",
            dashes_end=False,
        ),
        "pytest": _Guard(
            long=("basetemp", "confcutdir", "rootdir", "override-ini", "pastebin", "pdbcls",
                  "junit-xml", "junitxml", "log-file", "debug", "resultlog"),
            short="pco",
        ),
        "go": _Guard(long=("toolexec", "exec"), words=("-toolexec", "-exec", "-o", "-modfile"),
                     prefixes=("-toolexec=", "-exec=", "-o=", "-modfile=", "-overlay")),
        "cargo": _Guard(long=("config", "manifest-path", "target-dir"), short="ZC"),
        "npm": _Guard(long=("prefix", "script-shell", "node-options", "shell", "userconfig",
                            "globalconfig", "init-module", "git")),
        "diff": _Guard(long=("output",)),
    }
)  # fmt: skip


def covers_everything(words: Sequence[str]) -> bool:
    """Tell whether a rule for all commands that begin with these words would cover any program."""
    program, *more = words
    name = _name(program)
    if name in RUNNERS and (not more or more[-1].startswith("-")):
        return True
    runs = len(more) == 1 and more[0] in _RUN_WORDS
    return runs and name in SUBCOMMANDS and not (name in _SCRIPT_RUNNERS and more[0] == "run")


def guarded(command: SimpleCommand, known: int) -> str:
    """Return the first argument behind the ``known`` words that a rule does not cover, or "".

    An argument that only the shell will know counts where one of them could be such an option.
    """
    program, *more = command.texts
    if more[:1] == ["-m"]:  # a module of Python is a program of its own
        program = more[1] if len(more) > 1 else None
    guard = _GUARDS.get(_name(program or ""))
    if guard is None:
        return ""
    for word in command.words[known:]:
        if word.text == "--" and guard.dashes_end:
            return ""
        if _is_guarded(guard, word):
            return word.text if word.text is not None else "what the shell puts there"
    return ""


def prefix_of(command: SimpleCommand) -> tuple[str, ...]:
    """Return the words that say what a command does, to be offered as a rule; () for none."""
    texts = command.texts
    program = texts[0] or ""
    count = SUBCOMMANDS.get(program, 1)
    if texts[1:2] == ("-m",) or (program in _SCRIPT_RUNNERS and texts[1:2] == ("run",)):
        count = 3
    words = tuple(text for text in texts[:count] if text)
    options = [word for word in words[1:] if word.startswith("-") and word != "-m"]
    if "/" in program or len(words) < count or options or covers_everything(words):
        return ()
    return () if guarded(command, count) else words


def _name(program: str) -> str:
    return program.rpartition("/")[2]


def _is_guarded(guard: _Guard, word: Word) -> bool:
    text = word.text
    if text is None:
        return word.option
    if text.startswith("--"):
        name = text[2:].partition("=")[0]
        return any(option.startswith(name) for option in guard.long)
    if text in guard.words or any(text.startswith(prefix) for prefix in guard.prefixes):
        return True
    return text.startswith("-") and any(letter in guard.short for letter in text[1:])
