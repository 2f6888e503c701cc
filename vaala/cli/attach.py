"""`vaala attach`: a person at a terminal, in a conversation that lives in the server."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Awaitable, Callable
from functools import partial

import trio

from vaala.cli.approver import Approver
from vaala.cli.connecting import open_server, tell_connection
from vaala.cli.conversations import find_id
from vaala.cli.driver import Driver
from vaala.cli.exits import DONE, USAGE, CommandFailed
from vaala.cli.failures import run_program
from vaala.cli.interrupts import Interrupts, heed_signals
from vaala.cli.output import Output
from vaala.cli.people import directory_of, title_of
from vaala.cli.progress import Progress, Update
from vaala.cli.standard import aside
from vaala.cli.terminal import Terminal, open_terminal
from vaala.cli.text_view import TextView
from vaala.cli.transcript import item_text
from vaala.client import RemoteConversation
from vaala_protocol.items import AssistantMessage, Item, UserMessage
from vaala_protocol.state import ConversationInfo, Snapshot

_HINT = "(type a message; Ctrl-C interrupts a turn; Ctrl-D leaves, and the conversation goes on)"


class _Leaving(Terminal):
    """A terminal whose closed input, as by Ctrl-D, leaves whatever is asked, without an answer."""

    def __init__(self, terminal: Terminal, output: Output, scope: trio.CancelScope) -> None:
        self._terminal = terminal
        self._output = output
        self._scope = scope

    def in_foreground(self) -> bool:
        return self._terminal.in_foreground()

    async def read_line(self, prompt: str, say: Callable[[str], None]) -> str:
        """See `Terminal.read_line`; ends in a cancel instead of with None."""
        line = await self._terminal.read_line(prompt, say)
        if line is None:
            say("\n")
            await self._output.drain()
            self._scope.cancel()
            await trio.sleep_forever()
        return line


def main(arguments: Namespace) -> int:
    return run_program(partial(_attach, arguments))


async def _attach(arguments: Namespace) -> int:
    with open_terminal() as terminal:
        if terminal is None:
            raise CommandFailed("no terminal: use vaala watch and vaala send", USAGE)
        async with heed_signals() as interrupts, open_server(arguments) as client:
            conversation = client.conversation(await find_id(client, arguments.id))
            info = await conversation.info()
            async with conversation.subscribe() as updates:
                first = await updates.__anext__()
                aside(_state(info, first))
                with trio.CancelScope() as scope:
                    leaving = _Leaving(terminal, output := Output(), scope)
                    attached = _attached(conversation, info, leaving, output)
                    # Whether a turn runs has to be known before the first prompt.
                    attached.show(first)
                    with interrupts.watching(attached):
                        talk = partial(_talk, attached, leaving, interrupts)
                        async with trio.open_nursery() as nursery:
                            nursery.start_soon(tell_connection, client, attached.view.note)
                            await attached.during(talk, updates)
            aside(f"vaala: left; it lives on in the server: vaala attach {conversation.id}")
    return 128 + interrupts.received if interrupts.received else DONE


def _state(info: ConversationInfo, first: Update) -> str:
    """Return what a person has to know to go on: which conversation, and what was said last."""
    assert isinstance(first, Snapshot), "a subscription begins with a snapshot"
    root = next(session for session in first.sessions if session.info.id == info.id)
    heard = [item for item in root.items if isinstance(item, UserMessage)][-1:]
    said = [item for item in root.items if isinstance(item, AssistantMessage) and item.text.strip()]
    last: list[Item] = sorted([*heard, *said[-1:]], key=lambda item: item.at)
    head = f"{title_of(info, 200)}\n{info.id}, {directory_of(info)}"
    return "\n\n".join([head, *map(item_text, last), _HINT])


def _attached(
    conversation: RemoteConversation, info: ConversationInfo, terminal: Terminal, output: Output
) -> Driver:
    progress = Progress(conversation.id, everything=True)
    view = TextView(conversation.id, output)
    where = info.locations[0].directory if info.locations else "."
    approver = Approver(conversation, progress, terminal, view, where, name="vaala attach")
    return Driver(conversation, view, output, progress, approver, None)


async def _talk(attached: Driver, terminal: _Leaving, interrupts: Interrupts) -> int:
    """Ask for a message whenever the agent is idle, until cancelled."""
    progress = attached.progress
    while True:
        if progress.running is not None or progress.approvals or progress.questions:
            await progress.wait_change()
            continue
        interrupts.received = 0  # what it interrupted has ended: the next is a first one again
        with attached.view.asking() as say_now:
            line = await _line(partial(terminal.read_line, "> ", say_now), progress)
        if line.strip():
            await attached.prompt(line)


async def _line(read: Callable[[], Awaitable[str]], progress: Progress) -> str:
    """Read a line; an empty one when somebody else has begun a turn meanwhile."""
    line = ""

    async def until_busy(scope: trio.CancelScope) -> None:
        while progress.running is None and not progress.approvals and not progress.questions:
            await progress.wait_change()
        scope.cancel()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(until_busy, nursery.cancel_scope)
        line = await read()
        nursery.cancel_scope.cancel()
    return line
