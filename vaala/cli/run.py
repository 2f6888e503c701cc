"""`vaala run`: prompts in, an answer out."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import trio
from msgspec import Struct

from vaala.cli.allowing import RunRules, check_tools
from vaala.cli.approver import Approver
from vaala.cli.connecting import data_dir, open_server
from vaala.cli.conversations import find_id, newest_id
from vaala.cli.driver import Driver
from vaala.cli.exits import DONE, FAILED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.home import Home, ServerHome
from vaala.cli.interrupts import heed_signals
from vaala.cli.json_view import JsonView, conversation_line, error_line
from vaala.cli.model_options import read_options
from vaala.cli.output import Output
from vaala.cli.output_schema import DocumentView, read_schema
from vaala.cli.progress import Progress, View
from vaala.cli.prompts import read_prompts
from vaala.cli.standard import aside, say, say_last
from vaala.cli.terminal import Terminal, open_terminal
from vaala.cli.text_view import TextView
from vaala.interface import Conversation
from vaala_protocol.errors import BadRequest
from vaala_protocol.methods.catalog import AgentGetParams
from vaala_protocol.settings import Settings

DEFAULT_AGENT = "default"


class Job(Struct, frozen=True):
    """A conversation to run prompts in."""

    conversation: Conversation
    settings: Settings | None
    """For these prompts only; None: what the conversation has."""
    model_line: str
    """Which model runs, and why."""
    rules: RunRules
    output_schema: dict[str, Any] | None
    """What the answers have to match."""


def main(arguments: Namespace) -> int:
    try:
        prompts = read_prompts(arguments)
        _check(arguments)
        return run_program(partial(_run, arguments, prompts))
    except CommandFailed as error:
        if arguments.json:
            say_last(error_line(error.message, error.code))
        raise


def _check(arguments: Namespace) -> None:
    goes_on = arguments.conversation is not None or arguments.continue_
    if arguments.conversation is not None and arguments.continue_:
        raise CommandFailed("give --continue or --conversation, not both", USAGE)
    if goes_on and arguments.agent is not None:
        raise CommandFailed("--agent is for a new conversation; this one has its agent", USAGE)
    if arguments.detach and (arguments.in_process or arguments.allow):
        other = "--in-process" if arguments.in_process else "--allow"
        raise CommandFailed(f"{other} needs this command to stay: leave out --detach", USAGE)
    if arguments.cwd is not None and not Path(arguments.cwd).is_dir():
        raise CommandFailed(f"--cwd {arguments.cwd}: no such directory", USAGE)
    arguments.option = read_options(arguments.option or ())
    if arguments.output_schema is not None:
        arguments.output_schema = read_schema(arguments.output_schema)


async def _run(arguments: Namespace, prompts: Sequence[str]) -> int:
    code = FAILED
    with open_terminal() as terminal:
        async with heed_signals() as interrupts, _open_home(arguments) as home:
            job = await _job(home, arguments)
            if arguments.detach:
                return await _detach(job, prompts, json=arguments.json)
            async with job.conversation.subscribe() as updates:
                driver = await _driver(job, arguments, terminal)
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(home.tell_connection, driver.view.note)
                    with interrupts.watching(driver):
                        code = await driver.run(prompts, updates)
                    nursery.cancel_scope.cancel()
            if home.shared and interrupts.received and driver.progress.unfinished:
                aside(_left(job.conversation.id, being_interrupted=interrupts.interrupting))
    return 128 + interrupts.received if interrupts.received else code


def _left(conversation_id: str, *, being_interrupted: bool) -> str:
    """Say what becomes of the turn that this command does not wait for."""
    if being_interrupted:
        way_on = f"vaala run --conversation {conversation_id} PROMPT"
        return f"vaala: the server ends its turn; go on with it: {way_on}"
    return f"vaala: it goes on in the server: vaala attach {conversation_id}"


@asynccontextmanager
async def _open_home(arguments: Namespace) -> AsyncGenerator[Home]:
    allow: Sequence[str] = arguments.allow or ()
    if arguments.in_process:
        from vaala.cli.wiring import open_user

        async with open_user(data_dir(arguments), allow=allow) as user:
            yield user
        return
    rules = RunRules.parse(allow)
    async with open_server(arguments) as client:
        if allow:
            agent = await client.ask(AgentGetParams(name=arguments.agent or DEFAULT_AGENT))
            check_tools(rules, agent.tools)
        yield ServerHome(client)


async def _detach(job: Job, prompts: Sequence[str], *, json: bool) -> int:
    """Leave the prompts to the server: they are on disk and run one after the other."""
    for prompt in prompts:
        await job.conversation.send(prompt, settings=job.settings, output_schema=job.output_schema)
    if json:
        say(conversation_line(job.conversation.id))
    else:
        aside(job.model_line)
        say(job.conversation.id)
    return DONE


async def _driver(job: Job, arguments: Namespace, terminal: Terminal | None) -> Driver:
    output = Output()
    conversation = job.conversation
    progress = Progress(conversation.id)
    if arguments.json:
        view: View = JsonView(output)
    elif job.output_schema is not None:
        view = DocumentView(conversation.id, output)
    else:
        view = TextView(conversation.id, output, progress.is_ours)
    view.note(job.model_line)
    places = (await conversation.info()).locations
    where = places[0].directory if places else os.curdir
    approver = Approver(conversation, progress, terminal, view, where, rules=job.rules)
    schema = job.output_schema
    return Driver(conversation, view, output, progress, approver, job.settings, schema)


async def _job(home: Home, arguments: Namespace) -> Job:
    given = Settings(
        model=_model(arguments.model),
        effort=arguments.effort,
        mode=arguments.mode,
        options=arguments.option,
    )
    if arguments.conversation is None and not arguments.continue_:
        return await _new(home, arguments, given)
    return await _going_on(home, arguments, given)


async def _new(home: Home, arguments: Namespace, given: Settings) -> Job:
    name: str = arguments.agent or DEFAULT_AGENT
    own = await home.agent(name)
    line = await _model_line(home, given.model, own.model, f"agent {name}")
    conversation = await home.conversations.create_conversation(
        directory=directory(arguments), agent=name, settings=given
    )
    settings, rules = _for_the_run(home, arguments, Settings(), given.over(own))
    return Job(conversation, settings, line, rules, arguments.output_schema)


async def _going_on(home: Home, arguments: Namespace, given: Settings) -> Job:
    if arguments.conversation is not None:
        conversation_id = await find_id(home.catalog, arguments.conversation)
    else:
        conversation_id = await newest_id(home.catalog, directory(arguments))
    conversation = await home.conversations.open_conversation(conversation_id)
    if arguments.conversation is not None and arguments.cwd is not None:
        await conversation.update(directory=directory(arguments))
    own = await home.settings(conversation)
    line = await _model_line(home, given.model, own.model, "this conversation")
    settings, rules = _for_the_run(home, arguments, given, given.over(own))
    return Job(conversation, settings, line, rules, arguments.output_schema)


async def _model_line(home: Home, given: str | None, own: str | None, owner: str) -> str:
    """Say which model will run, and why; raises `BadRequest` when none can."""
    try:
        name, why = await home.resolve(given or own)
    except BadRequest as error:
        if given is not None or own is None:
            raise
        raise type(error)(f"{owner}: {error}") from error
    if given is not None:
        return f"model {name}: --model"
    return why if own is None else f"model {name}: {owner}"


def _for_the_run(
    home: Home, arguments: Namespace, given: Settings, in_force: Settings
) -> tuple[Settings | None, RunRules]:
    """Return the settings and the rules of this run alone.

    The mode read-only asks nobody, so a rule of ours would never be heard by a server: there the
    run asks, and what no rule covers is rejected here.
    """
    rules = RunRules()
    if home.shared and arguments.allow:
        only = in_force.mode == "read-only"
        rules = RunRules.parse(arguments.allow, only=only)
        if only:
            given = Settings(mode="ask").over(given)
    return (given if given != Settings() else None), rules


def _model(name: str | None) -> str | None:
    """Return a model by a name that means the same in every directory."""
    prefix, colon, file = (name or "").partition(":")
    return f"{prefix}:{os.path.abspath(file)}" if prefix == "scripted" and colon else name


def directory(arguments: Namespace) -> str:
    """Return the directory to work in; raises `CommandFailed` when this one is gone."""
    try:
        return os.path.realpath(arguments.cwd or os.getcwd())
    except FileNotFoundError as error:
        text = "the working directory does not exist any more: name one with --cwd"
        raise CommandFailed(text, USAGE) from error
