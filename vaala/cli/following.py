"""`vaala watch`, `send`, `wait` and `attach`: a conversation that lives in the server."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from vaala.cli.approver import Approver
from vaala.cli.connecting import open_server, tell_connection
from vaala.cli.conversations import find_id
from vaala.cli.driver import Driver
from vaala.cli.exits import DONE, FAILED, REFUSED, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.interrupts import Interrupts, heed_signals
from vaala.cli.json_view import JsonView
from vaala.cli.outcome import code_of
from vaala.cli.output import Output
from vaala.cli.progress import Progress, View
from vaala.cli.standard import aside, say
from vaala.cli.terminal import Terminal, open_terminal
from vaala.cli.text_view import TextView
from vaala.client import RemoteConversation
from vaala_protocol.events import Frame, TurnChanged
from vaala_protocol.state import SessionSnapshot, Snapshot, TurnInfo


def watch(arguments: Namespace) -> int:
    return run_program(partial(_watch, arguments))


def send(arguments: Namespace) -> int:
    return run_program(partial(_send, arguments))


def wait(arguments: Namespace) -> int:
    return run_program(partial(_wait, arguments))


def attach(arguments: Namespace) -> int:
    return run_program(partial(_attach, arguments))


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
    async with heed_signals() as interrupts, open_server(arguments) as client:
        conversation = client.conversation(await find_id(client, arguments.id))
        progress = await _idle(conversation)
        if progress.turn is None:
            raise CommandFailed(f"nothing has run in {conversation.id} yet", USAGE)
        result = await conversation.turn(progress.turn.id)
        if result.text:
            say(result.text.rstrip("\n"))
        for call in progress.denied:
            aside(f"vaala: refused: {call.title or call.name}: {call.reason}")
        code = code_of(result.turn, network=progress.model_error == "network")
        if code != DONE:
            reason = result.turn.message or result.turn.stop_reason or result.turn.state
            aside(f"vaala: {reason}")
        return REFUSED if progress.denied else code
    return 128 + interrupts.received


async def _idle(conversation: RemoteConversation) -> Progress:
    """Wait until no turn runs and no message waits; return what is known of the last turn."""
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
            told = told or _tell_pending(progress)
            async for update in updates:
                progress.update(update)
                told = told or _tell_pending(progress)
                if isinstance(update, Snapshot) or _ended(update, conversation.id):
                    break
            else:
                raise CommandFailed(f"conversation {conversation.id} was deleted", USAGE)


def _tell_pending(progress: Progress) -> bool:
    """Tell that a person is waited for; False when nobody is."""
    pending = bool(progress.approvals or progress.questions)
    if pending:
        aside("vaala: it waits for a person: vaala inbox")
    return pending


def _root(update: Snapshot | Frame, root_id: str) -> SessionSnapshot:
    assert isinstance(update, Snapshot), "a subscription begins with a snapshot"
    return next(session for session in update.sessions if session.info.id == root_id)


async def _attach(arguments: Namespace) -> int:
    with open_terminal() as terminal:
        if terminal is None:
            raise CommandFailed("no terminal: use vaala watch and vaala send", USAGE)
        async with heed_signals() as interrupts, open_server(arguments) as client:
            conversation = client.conversation(await find_id(client, arguments.id))
            async with conversation.subscribe() as updates:
                attached = await _attached(conversation, terminal)
                # Whether a turn runs has to be known before the first prompt.
                attached.show(await updates.__anext__())
                with interrupts.watching(attached):
                    talk = partial(_talk, attached, terminal, interrupts)
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(tell_connection, client, attached.view.note)
                        await attached.during(talk, updates)
                        nursery.cancel_scope.cancel()
            aside(f"vaala: left; it lives on in the server: vaala attach {conversation.id}")
    return 128 + interrupts.received if interrupts.received else DONE


async def _attached(conversation: RemoteConversation, terminal: Terminal) -> Driver:
    output, progress = Output(), Progress(conversation.id, everything=True)
    view = TextView(conversation.id, output)
    places = (await conversation.info()).locations
    where = places[0].directory if places else "."
    approver = Approver(conversation, progress, terminal, view, where, name="vaala attach")
    return Driver(conversation, view, output, progress, approver, None)


async def _talk(attached: Driver, terminal: Terminal, interrupts: Interrupts) -> int:
    """Ask for a message whenever the agent is idle, until the terminal is closed."""
    progress = attached.progress
    while True:
        if progress.running is not None or progress.approvals or progress.questions:
            await progress.wait_change()
            continue
        interrupts.received = 0  # what it interrupted has ended: the next is a first one again
        with attached.view.asking() as say_now:
            line = await _line(partial(terminal.read_line, "> ", say_now), progress)
        if line is None:
            return DONE
        if line.strip():
            await attached.prompt(line)


async def _line(read: Callable[[], Awaitable[str | None]], progress: Progress) -> str | None:
    """Read a line; an empty one when somebody else has begun a turn meanwhile."""
    line: str | None = ""

    async def until_busy(scope: trio.CancelScope) -> None:
        while progress.running is None and not progress.approvals and not progress.questions:
            await progress.wait_change()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_busy, nursery.cancel_scope)
        line = await read()
        nursery.cancel_scope.cancel()
    return line
