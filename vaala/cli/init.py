"""`vaala init`: a first configuration, with every key in it as a comment."""

from __future__ import annotations

import os
from argparse import Namespace

from vaala.cli.exits import DONE, UNREACHABLE, CommandFailed
from vaala.cli.standard import say
from vaala.config.errors import ConfigError
from vaala.config.init import write_starter
from vaala.paths import config_directory


def main(arguments: Namespace) -> int:
    del arguments
    directory = config_directory(os.environ)
    any_written = False
    try:
        for file, written in write_starter(directory):
            any_written = any_written or written
            say(f"{'wrote' if written else 'kept '} {file}")
    except ConfigError as error:
        raise CommandFailed(str(error), UNREACHABLE) from error
    except OSError as error:
        raise CommandFailed(f"{error.filename}: {error.strerror}", UNREACHABLE) from error
    next_step = "vaala models add, or name a provider in providers.yaml"
    say(f"next: {next_step}" if any_written else "nothing was missing; next: vaala config check")
    return DONE
