"""What clients do with the commands of a conversation: look at them, write to them, end them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from vaala import limits
from vaala.text import whole_characters
from vaala.tools.base import ToolFailure
from vaala.tools.limits import COMMAND_SAVED_BYTES_MAX
from vaala.tools.output_window import Piece
from vaala.tools.running_command import SessionCommand
from vaala_protocol.errors import BadRequest, NotFound, Unreadable
from vaala_protocol.state import CommandInfo

if TYPE_CHECKING:
    from vaala.conversation import Conversation
    from vaala.session import Session
    from vaala_protocol.methods.command import CommandOutputResult

_CHARACTER_BYTES_MAX = 4


def commands_of(conversation: Conversation) -> tuple[CommandInfo, ...]:
    """Return the background commands of all its sessions, oldest first."""
    found = (info for session in conversation.sessions.values() for info in session.command_infos)
    return tuple(sorted(found, key=lambda info: (info.started_at, info.id)))


async def read_output(
    conversation: Conversation, command_id: str, offset: int, limit_bytes: int
) -> CommandOutputResult:
    """See `ConversationHandle.command_output`."""
    from vaala_protocol.methods.command import CommandOutputResult

    session, command = _find(conversation, command_id)
    if offset < 0:
        raise BadRequest(f"output begins at byte 0, not {offset}")
    length = max(_CHARACTER_BYTES_MAX, min(limit_bytes, limits.COMMAND_OUTPUT_BYTES_MAX))
    piece = await _read(session, command, offset, length)
    running = command.exit is None
    data = piece.data
    if piece.offset > offset:  # what was asked for is gone: begin with a whole character
        data = data[_tail_of_character(data) :]
    start = piece.offset + len(piece.data) - len(data)
    more = running or start + len(data) < command.output_bytes
    whole = whole_characters(data) if more else data
    if not whole and not running:
        whole = data  # the rest of a character was not kept
    ended = command.exit
    return CommandOutputResult(
        text=whole.decode("utf-8", "replace"),
        offset=start,
        next_offset=start + len(whole),
        total_bytes=command.output_bytes,
        running=running,
        exit_code=None if ended is None else ended.code,
        signal=None if ended is None else ended.signal,
    )


async def write(conversation: Conversation, command_id: str, text: str) -> None:
    """See `ConversationHandle.write_command`."""
    _, command = _find(conversation, command_id)
    with _refusing():
        await command.write(text.encode("utf-8", "replace"))


async def resize(conversation: Conversation, command_id: str, columns: int, rows: int) -> None:
    """See `ConversationHandle.resize_command`."""
    _, command = _find(conversation, command_id)
    if not (0 < columns <= limits.TERMINAL_SIDE_MAX and 0 < rows <= limits.TERMINAL_SIDE_MAX):
        raise BadRequest(f"a terminal cannot have {columns} columns and {rows} rows")
    with _refusing():
        await command.resize(columns, rows)


async def kill(
    conversation: Conversation, command_id: str, signal: Literal["INT", "TERM", "KILL", "HUP"]
) -> None:
    """See `ConversationHandle.kill_command`."""
    _, command = _find(conversation, command_id)
    await command.kill(signal)


async def _read(session: Session, command: SessionCommand, offset: int, length: int) -> Piece:
    """Return bytes from a place on, or from the first one behind it that is kept."""
    blob = command.output_blob
    saved = min(command.output_bytes, COMMAND_SAVED_BYTES_MAX)
    if blob is None or offset >= saved:
        return command.window.read(offset, length)
    try:
        data = await session.files.load(blob, offset, min(length, saved - offset))
    except ToolFailure as failure:
        raise Unreadable(str(failure)) from failure
    return Piece(offset, data)


def _find(conversation: Conversation, command_id: str) -> tuple[Session, SessionCommand]:
    for session in conversation.sessions.values():
        if (command := session.find_command(command_id)) is not None:
            return session, command
    running = ", ".join(info.id for info in commands_of(conversation)) or "none"
    raise NotFound(
        f"conversation {conversation.id} has no command {command_id[:80]!r} that runs or ended "
        f"lately; running in the background: {running}"
    )


@contextmanager
def _refusing() -> Generator[None]:
    """Tell a client what is told to an agent that does the same."""
    try:
        yield
    except ToolFailure as failure:
        raise BadRequest(str(failure)) from failure


def _tail_of_character(data: bytes) -> int:
    """Return how many bytes at the begin belong to a character that began before."""
    count = 0
    while count < min(len(data), _CHARACTER_BYTES_MAX - 1) and data[count] & 0xC0 == 0x80:
        count += 1
    return count
