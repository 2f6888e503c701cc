"""`vaala models test`: one short request, and how it went."""

from __future__ import annotations

import os
from argparse import Namespace

from vaala.cli.exits import DONE, FAILED, UNREACHABLE, CommandFailed
from vaala.cli.standard import aside, say
from vaala.cli.trial import Trial, try_model
from vaala.config.keeper import open_keeper
from vaala.models.base import ModelFailure
from vaala.paths import config_directory
from vaala.tools.text import clean_line
from vaala_protocol.base import encode


async def test(arguments: Namespace) -> int:
    """Try the model that is named, or the default, in this process and its environment."""
    async with open_keeper(config_directory(os.environ), os.environ) as keeper:
        model, why = await keeper.model(arguments.name, {})
        aside(why)
        try:
            trial = await try_model(model)
        except ModelFailure as failure:
            if arguments.json:
                error = {"kind": failure.kind, "message": failure.message}
                say(encode({"model": model.name, "error": error}).decode())
            code = UNREACHABLE if failure.kind == "network" else FAILED
            raise CommandFailed(failure.message, code) from failure
    say(encode(trial).decode() if arguments.json else told_trial(trial))
    return DONE


def told_trial(trial: Trial) -> str:
    """Return a line for people."""
    text = clean_line(trial.text, 80)
    answer = f'"{text}"' if text else f"no text ({trial.finish})"
    used = trial.usage
    tokens = f"{used.input + used.cache_read + used.cache_write} tokens in"
    tokens += f", {used.output + used.reasoning} out" if used.total else ""
    counted = f"; {tokens}" if used.total else ""
    return (
        f"{trial.model} answers: first byte after {trial.first_byte_s:.2f} s,"
        f" all after {trial.seconds:.2f} s: {answer}{counted}"
    )
