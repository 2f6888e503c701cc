"""From fork to exec: what the child does to become the command."""

from __future__ import annotations

import os
import signal
from struct import Struct

from .wire import (
    FLAG_PTY,
    FLAG_STDIN,
    STAGE_DIRECTORY,
    STAGE_PROGRAM,
    STAGE_TERMINAL,
    Request,
)

FAILURE = Struct("!ii")
"""Stage and errno, written to the status pipe; exec closes the pipe without a word."""

IGNORED = (
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGTSTP,
    signal.SIGTTIN,
    signal.SIGTTOU,
    signal.SIGPIPE,
    signal.SIGXFSZ,
)
"""Ignored by the supervisor. Exec keeps "ignore", so the child takes them back first."""


def become(request: Request, output: int, stdin: int, status: int) -> None:
    """Never returns: either the process is the command, or it told why not and is gone.

    ``stdin`` is the pipe's read end, or the null device where nobody will write. With a PTY
    ``output`` is its terminal side and standard input too, if somebody will write.
    """
    stage = STAGE_TERMINAL
    try:
        if request.flags & FLAG_PTY:
            os.login_tty(output)
            if not request.flags & FLAG_STDIN:
                os.dup2(stdin, 0)
        else:
            os.setsid()
            os.dup2(stdin, 0)
            os.dup2(output, 1)
            os.dup2(output, 2)
        for number in IGNORED:
            signal.signal(number, signal.SIG_DFL)
        stage = STAGE_DIRECTORY
        os.chdir(request.cwd)
        stage = STAGE_PROGRAM
        pairs = (entry.partition(b"=") for entry in request.env)
        os.execvpe(request.argv[0], request.argv, {name: value for name, _, value in pairs})
    except OSError as error:
        os.write(status, FAILURE.pack(stage, error.errno or 0))
    finally:
        os._exit(127)
