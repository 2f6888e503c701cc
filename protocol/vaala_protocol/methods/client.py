"""``client/``: what a client does for conversations, and what the server then asks of it.

An offer dies with its connection: calls that wait fail, files come from the executor's disk again,
tools are gone before the next model call.
"""

from __future__ import annotations

from typing import Any

from vaala_protocol.base import Value
from vaala_protocol.content import Content
from vaala_protocol.methods.base import Done, Notification, Request
from vaala_protocol.methods.runtime import ClientEnvironment


class ClientEnvironmentParams(Value, Request[Done], frozen=True, kw_only=True):
    """Say what the client runs in, in place of what this connection told before.

    Conversations have it from the next message on. ``bad_request`` for a client that is on another
    machine than the server.
    """

    method = "client/environment"
    result = Done

    environment: ClientEnvironment


class OfferedTool(Value, frozen=True, kw_only=True):
    """A tool that the client runs; ``parameters`` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]
    read_only: bool = False
    """It changes nothing, so the mode ``ask`` lets it run."""


class OfferedFiles(Value, frozen=True, kw_only=True):
    read: bool = True
    write: bool = True


class ClientOfferResult(Value, frozen=True, kw_only=True):
    offer_id: str


class ClientOfferParams(Value, Request[ClientOfferResult], frozen=True, kw_only=True):
    """Offer services for a conversation; an earlier offer of this connection for it is replaced.

    ``bad_request`` for files or a terminal from another machine than the server's.
    """

    method = "client/offer"
    result = ClientOfferResult

    conversation_id: str
    files: OfferedFiles | None = None
    """Text files of the local executor are read and written through the client."""
    terminal: bool = False
    """Commands of the local executor run in the client's terminal."""
    tools: tuple[OfferedTool, ...] = ()
    elicitation: bool = False
    """Questions of the agent are put to the person by the client."""


class ClientWithdrawParams(Value, Request[Done], frozen=True, kw_only=True):
    """Take an offer back."""

    method = "client/withdraw"
    result = Done

    offer_id: str


class FileReadResult(Value, frozen=True, kw_only=True):
    text: str


class FileReadParams(Value, Request[FileReadResult], frozen=True, kw_only=True):
    """To the client: return a text file as the person sees it, with changes not saved yet."""

    method = "client/readFile"
    result = FileReadResult

    conversation_id: str
    path: str


class FileWriteParams(Value, Request[Done], frozen=True, kw_only=True):
    """To the client: replace a text file, or make it."""

    method = "client/writeFile"
    result = Done

    conversation_id: str
    path: str
    text: str


class ToolRunResult(Value, frozen=True, kw_only=True):
    content: tuple[Content, ...]
    is_error: bool = False


class ToolRunParams(Value, Request[ToolRunResult], frozen=True, kw_only=True):
    """To the client: run a tool that it offered."""

    method = "client/runTool"
    result = ToolRunResult

    conversation_id: str
    call_id: str
    name: str
    arguments: dict[str, Any]


class ElicitResult(Value, frozen=True, kw_only=True):
    answer: str | None
    """None: the person does not want to answer."""


class ElicitParams(Value, Request[ElicitResult], frozen=True, kw_only=True):
    """To the client: put a question to the person."""

    method = "client/elicit"
    result = ElicitResult

    conversation_id: str
    question_id: str
    text: str
    choices: tuple[str, ...] = ()


class TerminalExit(Value, frozen=True, kw_only=True):
    code: int | None = None
    signal: int | None = None


class TerminalStartResult(Value, frozen=True, kw_only=True):
    terminal_id: str


class TerminalStartParams(Value, Request[TerminalStartResult], frozen=True, kw_only=True):
    """To the client: run a command in a terminal of its own."""

    method = "client/startTerminal"
    result = TerminalStartResult

    conversation_id: str
    command: str
    arguments: tuple[str, ...] = ()
    directory: str
    environment: dict[str, str] = {}


class TerminalOutputResult(Value, frozen=True, kw_only=True):
    text: str
    """Output since the last time; waits until there is some, or the command has ended."""
    dropped_bytes: int = 0
    """What the client did not keep before it."""
    exit: TerminalExit | None = None


class TerminalOutputParams(Value, Request[TerminalOutputResult], frozen=True, kw_only=True):
    """To the client: wait for output, and return it."""

    method = "client/terminalOutput"
    result = TerminalOutputResult

    terminal_id: str


class TerminalEndParams(Value, Request[TerminalExit], frozen=True, kw_only=True):
    """To the client: end the command and everything it started, and forget the terminal."""

    method = "client/endTerminal"
    result = TerminalExit

    terminal_id: str


class ClientCancelNotification(Value, Notification, frozen=True, kw_only=True):
    """The server does not want the answer of a request any more."""

    method = "client/cancel"

    request_id: int
