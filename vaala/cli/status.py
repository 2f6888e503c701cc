"""`vaala status`: what is alive in the server, as a tree."""

from __future__ import annotations

import time
from argparse import Namespace
from collections.abc import Iterator
from functools import partial

from vaala.cli.connecting import find_server
from vaala.cli.exits import DONE
from vaala.cli.failures import run_program
from vaala.cli.people import short_ids
from vaala.cli.standard import aside, say
from vaala.tools.text import clean_line, size_text
from vaala_protocol.base import encode
from vaala_protocol.methods.runtime import (
    ConversationActivity,
    RuntimeStatusResult,
    SessionStatus,
)


def main(arguments: Namespace) -> int:
    return run_program(partial(_status, arguments))


async def _status(arguments: Namespace) -> int:
    async with find_server(arguments) as client:
        status = None if client is None else await client.status()
    if arguments.json:
        say(encode(status).decode())
    elif status is None:
        say("no server runs; a command that needs one starts it, or `vaala serve`")
    else:
        say("\n".join(status_lines(status, int(time.time() * 1000))))
        for notice in status.notices:
            aside(f"vaala: {notice}")
    return DONE


def status_lines(status: RuntimeStatusResult, now_ms: int) -> Iterator[str]:
    """Yield the tree: the server, its conversations, their sessions, and what these wait for."""
    server = status.server
    yield (
        f"server {server.version} (process {server.pid}) at {status.address}, "
        f"up {_span(server.started_at, now_ms)}, {size_text(status.clients, 'client')}, "
        f"{status.memory_bytes / 1e6:,.0f} MB"
    )
    short = short_ids([one.id for one in status.conversations])
    for conversation in status.conversations:
        title = clean_line(conversation.title or "(no title)", 60)
        watched = size_text(conversation.subscribers, "viewer")
        yield f"  {short[conversation.id]}  [{conversation.status}] {title}, {watched}"
        yield from _sessions(conversation, None, "    ", now_ms)
    if (more := status.open_conversations - len(status.conversations)) > 0:
        yield f"  and {size_text(more, 'more open conversation')}"


def _sessions(
    conversation: ConversationActivity, parent: str | None, indent: str, now_ms: int
) -> Iterator[str]:
    known = {session.id for session in conversation.sessions}
    for session in conversation.sessions:
        above = session.parent if session.parent in known else None
        if above == parent:
            yield from _session(session, indent, now_ms)
            yield from _sessions(conversation, session.id, indent + "  ", now_ms)


def _session(session: SessionStatus, indent: str, now_ms: int) -> Iterator[str]:
    state = "no turn"
    if session.turn_started_at is not None:
        span = _span(session.turn_started_at, now_ms)
        state = f"turn for {span}, {size_text(session.steps, 'step')}"
    queued = f", {size_text(session.queued, 'message')} queued" if session.queued else ""
    yield f"{indent}{session.agent}: {state}{queued}"
    for wait in session.waits:
        reason = clean_line(f"{wait.subject}: {wait.reason}", 120)
        limit = f", at most until {_clock(wait.deadline_at)}" if wait.deadline_at else ""
        yield f"{indent}  waits for {reason} ({_span(wait.since, now_ms)}{limit})"
    for command in session.commands:
        span = _span(command.started_at, now_ms)
        size = size_text(command.output_bytes, "byte")
        yield f"{indent}  $ {clean_line(command.command, 100)} ({span}, {size})"
    if session.unsaved:
        yield f"{indent}  not saved yet: {clean_line(session.unsaved, 120)}"


def _clock(at_ms: int) -> str:
    return time.strftime("%H:%M:%S", time.localtime(at_ms / 1000))


def _span(since_ms: int, now_ms: int) -> str:
    seconds = max(0, now_ms - since_ms) // 1000
    if seconds < 120:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"
