"""`vaala run`: prompts in, an answer out."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from vaala.cli.approver import Approver
from vaala.cli.conversations import find_id, newest_id
from vaala.cli.data import data_dir
from vaala.cli.driver import Driver
from vaala.cli.exits import FAILED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.interrupts import heed_signals
from vaala.cli.json_view import JsonView, error_line
from vaala.cli.output import Output
from vaala.cli.progress import Progress, View
from vaala.cli.prompts import read_prompts
from vaala.cli.standard import say
from vaala.cli.terminal import Terminal, open_terminal
from vaala.cli.text_view import TextView
from vaala.cli.wiring import User, open_user
from vaala.config import DEFAULT_AGENT
from vaala.handle import ConversationHandle
from vaala.models.base import ModelUnreachable
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import Settings


class Job(Struct, frozen=True):
    """A conversation to run prompts in."""

    conversation: ConversationHandle
    settings: Settings | None
    """For these prompts only; None: what the conversation has."""
    model_line: str


def main(arguments: Namespace) -> int:
    try:
        prompts = read_prompts(arguments)
        _check(arguments)
        return run_program(partial(_run, arguments, prompts))
    except CommandFailed as error:
        if arguments.json:
            say(error_line(error.message, error.code))
        raise


def _check(arguments: Namespace) -> None:
    goes_on = arguments.conversation is not None or arguments.continue_
    if arguments.conversation is not None and arguments.continue_:
        raise CommandFailed("give --continue or --conversation, not both", USAGE)
    if goes_on and arguments.agent is not None:
        raise CommandFailed("--agent is for a new conversation; this one has its agent", USAGE)
    if arguments.cwd is not None and not Path(arguments.cwd).is_dir():
        raise CommandFailed(f"--cwd {arguments.cwd}: no such directory", USAGE)


async def _run(arguments: Namespace, prompts: Sequence[str]) -> int:
    code = FAILED
    with open_terminal() as terminal:
        async with (
            heed_signals() as interrupts,
            open_user(data_dir(arguments), allow=arguments.allow or ()) as user,
        ):
            job = await _job(user, arguments)
            async with job.conversation.subscribe() as updates:
                driver = await _driver(job, arguments, terminal)
                with interrupts.watching(driver):
                    code = await driver.run(prompts, updates)
    return 128 + interrupts.received if interrupts.received else code


async def _driver(job: Job, arguments: Namespace, terminal: Terminal | None) -> Driver:
    output = Output()
    conversation = job.conversation
    progress = Progress(conversation.id)
    view: View = JsonView(output) if arguments.json else TextView(conversation.id, output)
    view.note(job.model_line)
    places = (await conversation.info()).locations
    where = places[0].directory if places else os.curdir
    approver = Approver(conversation, progress, terminal, view, where)
    return Driver(conversation, view, output, progress, approver, job.settings)


async def _job(user: User, arguments: Namespace) -> Job:
    given = Settings(model=arguments.model, mode=arguments.mode)
    if arguments.conversation is None and not arguments.continue_:
        return await _new(user, arguments, given)
    return await _going_on(user, arguments, given)


async def _new(user: User, arguments: Namespace, given: Settings) -> Job:
    name: str = arguments.agent or DEFAULT_AGENT
    agent = user.runtime.definitions.agent(name)
    line = await _model_line(user, given.model, agent.settings.model, f"agent {name}")
    conversation = await user.runtime.create_conversation(
        directory=directory(arguments), agent=name, settings=given
    )
    return Job(conversation, None, line)


async def _going_on(user: User, arguments: Namespace, given: Settings) -> Job:
    store = user.runtime.store
    if arguments.conversation is not None:
        conversation_id = await find_id(store, arguments.conversation)
    else:
        conversation_id = await newest_id(store, directory(arguments))
    conversation = await user.runtime.open_conversation(conversation_id)
    actor = await user.runtime.conversation(conversation_id)
    if arguments.conversation is not None and arguments.cwd is not None:
        await conversation.update(directory=directory(arguments))
    elif actor.log.foreign:
        raise CommandFailed(
            f"conversation {conversation_id} was copied or imported: say with --cwd in which "
            "directory it works here", USAGE,
        )  # fmt: skip
    root = await actor.root()
    agent = user.runtime.definitions.agent(root.info.agent)
    settings = root.state.head.settings.over(agent.settings)
    line = await _model_line(user, given.model, settings.model, "this conversation")
    return Job(conversation, given if given != Settings() else None, line)


async def _model_line(user: User, given: str | None, own: str | None, owner: str) -> str:
    """Say which model will run, and why; raises `CommandFailed` and `BadRequest` when none can."""
    try:
        model, why = await user.models.resolve(given or own)
    except ModelUnreachable:
        raise
    except BadRequest as error:
        if given is not None or (own is None and user.config.default_model is None):
            raise
        place = owner if own is not None else f"{user.config.directory / 'models.yaml'}: default"
        raise CommandFailed(f"{place}: {error}", USAGE) from error
    if given is not None:
        return f"model {model.name}: --model"
    return why if own is None else f"model {model.name}: {owner}"


def directory(arguments: Namespace) -> str:
    """Return the directory to work in; raises `CommandFailed` when this one is gone."""
    try:
        return os.path.realpath(arguments.cwd or os.getcwd())
    except FileNotFoundError as error:
        text = "the working directory does not exist any more: name one with --cwd"
        raise CommandFailed(text, USAGE) from error
