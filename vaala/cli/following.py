"""`vaala watch`, `send` and `wait`: a conversation that lives in the server."""

from __future__ import annotations

import math
from argparse import Namespace
from functools import partial

import trio

from vaala.cli.connecting import open_server, tell_connection
from vaala.cli.conversations import find_id
from vaala.cli.exits import DONE, FAILED, REFUSED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.interrupts import heed_signals
from vaala.cli.json_view import JsonView
from vaala.cli.outcome import code_of
from vaala.cli.output import Output
from vaala.cli.progress import Progress, View
from vaala.cli.standard import aside, say
from vaala.cli.text_view import TextView
from vaala.client import RemoteConversation
from vaala_protocol.events import Frame, TurnChanged
from vaala_protocol.state import SessionSnapshot, Snapshot, TurnInfo

TIMEOUT_S_MAX = 30 * 24 * 3600.0
"""A longer wait is a mistake in the unit."""


def watch(arguments: Namespace) -> int:
    return run_program(partial(_watch, arguments))


def send(arguments: Namespace) -> int:
    return run_program(partial(_send, arguments))


def wait(arguments: Namespace) -> int:
    return run_program(partial(_wait, arguments))


async def _watch(arguments: Namespace) -> int:
    async with heed_signals() as interrupts, open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        output = Output()
        view: View = JsonView(output) if arguments.json else TextView(conversation.id, output)
        async with conversation.subscribe() as updates, trio.open_nursery() as nursery:
            nursery.start_soon(output.run)
            nursery.start_soon(tell_connection, client, view.note)
            async for update in updates:
                await output.wait_room()
                view.update(update)
                if (ended := _ended(update, conversation.id)) and not arguments.json:
                    view.end("", ended, DONE)
            await output.drain()
            nursery.cancel_scope.cancel()
            aside(f"vaala: conversation {conversation.id}: {updates.reason or 'closed'}")
            return DONE if updates.reason == "deleted" else FAILED
    return 128 + interrupts.received


def _ended(update: Snapshot | Frame, root_id: str) -> TurnInfo | None:
    """Return the root's turn when an update tells its end, or has come after it."""
    match update:
        case Frame(event=TurnChanged(session_id=session_id, turn=turn)):
            return turn if session_id == root_id and turn.state != "running" else None
        case Snapshot():
            turns = (one.turn for one in update.sessions if one.info.id == root_id)
            return next((turn for turn in turns if turn and turn.state != "running"), None)
        case _:
            return None


async def _send(arguments: Namespace) -> int:
    text = " ".join(arguments.prompt)
    if not text.strip():
        raise CommandFailed("the message is empty", USAGE)
    async with open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        await conversation.send(text, delivery="steer" if arguments.steer else "queue")
    aside(f"sent; follow it: vaala watch {conversation.id}")
    return DONE


async def _wait(arguments: Namespace) -> int:
    limit_s = _seconds(arguments.timeout)
    async with heed_signals() as interrupts, open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        progress: Progress | None = None
        with trio.move_on_after(limit_s):
            progress = await _idle(conversation, until_asked=arguments.until_asked)
        if progress is None:
            raise CommandFailed(f"{conversation.id} is not idle after {limit_s:g} s", REFUSED)
        if progress.turn is None:
            raise CommandFailed(f"nothing has run in {conversation.id} yet", USAGE)
        return await _told(conversation, progress, progress.turn)
    return 128 + interrupts.received


def _seconds(text: str | None) -> float:
    """Return what --timeout says; raises `CommandFailed`."""
    if text is None:
        return math.inf
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= TIMEOUT_S_MAX:
        expected = f"expected seconds, more than 0 and at most {TIMEOUT_S_MAX:g}"
        raise CommandFailed(f"--timeout {text}: {expected}", USAGE)
    return seconds


async def _told(conversation: RemoteConversation, progress: Progress, turn: TurnInfo) -> int:
    """Print the answer of a turn that has ended; return what `vaala run` would end with."""
    result = await conversation.turn(turn.id)
    if result.text:
        say(result.text.rstrip("\n"))
    for call in progress.denied:
        aside(f"vaala: refused: {call.title or call.name}: {call.reason}")
    code = code_of(result.turn, network=progress.model_error == "network")
    if code != DONE:
        reason = result.turn.message or result.turn.stop_reason or result.turn.state
        aside(f"vaala: {reason}")
    return REFUSED if progress.denied else code


async def _idle(conversation: RemoteConversation, *, until_asked: bool) -> Progress:
    """Wait until no turn runs and no message waits; return what is known of the last turn.

    With ``until_asked`` raises `CommandFailed` when a person is waited for.
    """
    told = False
    while True:
        async with conversation.subscribe() as updates:
            first = await updates.__anext__()
            root = _root(first, conversation.id)
            waiting = any(one.state == "waiting" for one in root.queue)
            progress = Progress(conversation.id)
            progress.update(first)
            if progress.running is None and not waiting:
                return progress
            told = told or _tell_pending(progress, until_asked=until_asked)
            async for update in updates:
                progress.update(update)
                told = told or _tell_pending(progress, until_asked=until_asked)
                if isinstance(update, Snapshot) or _ended(update, conversation.id):
                    break
            else:
                raise CommandFailed(f"conversation {conversation.id} was deleted", USAGE)


def _tell_pending(progress: Progress, *, until_asked: bool) -> bool:
    """Tell that a person is waited for; False when nobody is."""
    if not (progress.approvals or progress.questions):
        return False
    text = "it waits for a person: vaala inbox"
    if until_asked:
        raise CommandFailed(text, REFUSED)
    aside(f"vaala: {text}")
    return True


def _root(update: Snapshot | Frame, root_id: str) -> SessionSnapshot:
    assert isinstance(update, Snapshot), "a subscription begins with a snapshot"
    return next(session for session in update.sessions if session.info.id == root_id)
