"""What a session's commands tell: to its clients, and, when they end, to its agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vaala.requests import CommandGone
from vaala.tools.running_command import SessionCommand
from vaala_protocol.events import CommandChanged, CommandOutput
from vaala_protocol.state import CommandEnded, CommandInfo

if TYPE_CHECKING:
    from vaala.session import Session


class CommandNews:
    """See `vaala.tools.commands.CommandEvents`. Synchronous; clients lose nothing but output."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def command_output(self, command: SessionCommand, index: int, text: str) -> None:
        output = CommandOutput(
            session_id=self._session.id, command_id=command.id, index=index, text=text
        )
        self._session.publish(output)

    def command_in_background(self, info: CommandInfo) -> None:
        self._session.publish(CommandChanged(command=info))

    def command_ended(self, info: CommandInfo, ended: CommandEnded) -> None:
        self._session.publish(CommandChanged(command=info, ended=True))
        self._session.report(CommandGone(ended))
