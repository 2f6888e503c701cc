"""What programs do with conversations, wherever the runtime lives.

`vaala.handle.ConversationHandle` does it in this process and `vaala.client.RemoteConversation`
through a server; whoever is written against these protocols works with both. Every method raises
the kinds of `vaala_protocol.errors.Refused`; the remote ones also `vaala.client.Disconnected`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, Protocol, TypeAlias

from vaala_protocol.content import Content
from vaala_protocol.events import Frame
from vaala_protocol.methods.command import CommandOutputResult
from vaala_protocol.methods.session import SettingOption
from vaala_protocol.pages import ConversationPage, ConversationRow, ItemPage, ListQuery, SearchPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    CommandInfo,
    ConversationInfo,
    Delivery,
    InputInfo,
    Snapshot,
    TurnInfo,
    TurnResult,
)

Update: TypeAlias = Snapshot | Frame
"""A snapshot replaces all that was known; a frame changes it."""
Prompt: TypeAlias = str | Sequence[Content]
Signal: TypeAlias = Literal["INT", "TERM", "KILL", "HUP"]


class Updates(Protocol):
    """What happens in a conversation: a snapshot, then every frame once and in order.

    A reader that falls behind gets a snapshot in the place of what it missed. Ends when the
    conversation cannot be watched any more.
    """

    @property
    def reason(self) -> str | None:
        """Why nothing more comes: ``deleted``, ``closing`` or ``crashed``; None: it goes on, or
        what reading raises says why."""
        ...

    def __aiter__(self) -> AsyncIterator[Update]: ...

    async def __anext__(self) -> Update:
        """Return the next update. Cancel: nothing is lost."""
        ...

    def next_nowait(self) -> Update | None:
        """Return the next update when there is one."""
        ...


class Conversation(Protocol):
    """A conversation, by its id. ``session_id``: one of its open sessions, its root by default."""

    @property
    def id(self) -> str: ...

    async def info(self) -> ConversationInfo: ...

    async def run(
        self,
        prompt: Prompt,
        *,
        settings: Settings | None = None,
        client_id: str | None = None,
        output_schema: dict[str, Any] | None = None,
    ) -> TurnResult:
        """Send a prompt and wait for its turn to end, completed, failed or interrupted.

        With ``output_schema``, a JSON Schema, the text of a completed turn is one JSON document
        that matches it.

        Raises `NotPending` when the message was withdrawn before a turn took it, `Stopping` when
        the conversation was closed. Cancel: only stops waiting; use `interrupt` to end the turn.
        """
        ...

    async def send(
        self,
        prompt: Prompt,
        *,
        delivery: Delivery = "queue",
        client_id: str | None = None,
        settings: Settings | None = None,
        output_schema: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> InputInfo:
        """Give the agent a message; it is on disk when this returns.

        The same ``client_id`` again finds the first send's input.
        """
        ...

    async def edit_input(
        self, input_id: str, prompt: Prompt, *, session_id: str | None = None
    ) -> InputInfo: ...

    async def withdraw_input(
        self, input_id: str, *, session_id: str | None = None
    ) -> InputInfo: ...

    async def move_input(
        self, input_id: str, *, before: str | None = None, session_id: str | None = None
    ) -> None: ...

    async def resume(self, *, session_id: str | None = None) -> None: ...

    async def compact(self, *, session_id: str | None = None) -> TurnInfo:
        """Begin a turn that replaces what was said so far by a summary; return that turn.

        Raises `Busy` while a turn runs, `BadRequest` when there is nothing to compact.
        """
        ...

    async def interrupt(
        self, turn_id: str | None = None, *, session_id: str | None = None
    ) -> bool: ...

    async def answer_approval(
        self,
        approval_id: str,
        option: str,
        *,
        by: str = "user",
        reason: str = "",
        interrupt: bool = False,
    ) -> None: ...

    async def answer_question(
        self, question_id: str, answer: str | None, *, by: str = "user"
    ) -> None: ...

    async def configure(self, settings: Settings, *, session_id: str | None = None) -> Settings: ...

    async def options(self, *, session_id: str | None = None) -> tuple[SettingOption, ...]: ...

    async def update(
        self,
        *,
        title: str | None = None,
        directory: str | None = None,
        tags: Sequence[str] | None = None,
        archived: bool | None = None,
    ) -> ConversationInfo: ...

    async def items(
        self,
        *,
        before: int | None = None,
        after: int | None = None,
        limit: int = 50,
        session_id: str | None = None,
    ) -> ItemPage: ...

    async def turn(self, turn_id: str, *, session_id: str | None = None) -> TurnResult:
        """Return how a turn stands or ended, however long ago. Raises `NotFound`."""
        ...

    def subscribe(self) -> AbstractAsyncContextManager[Updates]: ...

    async def commands(self) -> tuple[CommandInfo, ...]: ...

    async def command_output(
        self, command_id: str, offset: int = 0, limit_bytes: int = 65_536
    ) -> CommandOutputResult: ...

    async def write_command(self, command_id: str, text: str) -> None: ...

    async def resize_command(self, command_id: str, columns: int, rows: int) -> None: ...

    async def kill_command(self, command_id: str, signal: Signal = "TERM") -> None: ...


class Conversations(Protocol):
    """Makes, opens and ends conversations: `vaala.Runtime`, and `vaala.client.Client`."""

    async def create_conversation(
        self,
        *,
        directory: str = ".",
        executor: str = "local",
        agent: str = "default",
        settings: Settings | None = None,
        title: str = "",
        ephemeral: bool = False,
        client_id: str | None = None,
    ) -> Conversation:
        """Make a conversation; nothing of it is on disk before its first message."""
        ...

    async def open_conversation(self, conversation_id: str) -> Conversation:
        """Raises `NotFound`."""
        ...

    async def delete_conversation(self, conversation_id: str) -> None: ...

    async def fork_conversation(
        self, conversation_id: str, turn_id: str | None = None
    ) -> Conversation: ...

    async def import_conversation(self, path: str) -> Conversation: ...

    async def export_conversation(self, conversation_id: str, path: str) -> int:
        """Write an archive to a new file; return its size in bytes."""
        ...


class Catalog(Protocol):
    """Finds conversations without opening them: the store of a runtime, and `Client`."""

    async def list(
        self, query: ListQuery = ..., cursor: str | None = None, limit: int = 50
    ) -> ConversationPage: ...

    async def search(self, text: str, cursor: str | None = None, limit: int = 20) -> SearchPage: ...

    async def get(self, conversation_id: str) -> ConversationRow | None:
        """Return a conversation as lists show it, None when there is no such."""
        ...
