"""``session/``: messages to an agent, its queue, its settings and its transcript."""

from __future__ import annotations

from typing import Any

from vaala_protocol.base import Value
from vaala_protocol.content import Content
from vaala_protocol.methods.base import Done, Request
from vaala_protocol.methods.runtime import ClientEnvironment
from vaala_protocol.pages import ItemPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import Delivery, InputInfo, TurnInfo, TurnResult


class SessionParams(Value, frozen=True, kw_only=True):
    """A session of a conversation; left out: its root session."""

    conversation_id: str
    session_id: str | None = None


class SessionSendParams(SessionParams, Request[InputInfo], frozen=True, kw_only=True):
    """Give the agent a message; it is on disk when this is answered.

    The same ``clientId`` again finds the input of the first send.
    """

    method = "session/send"
    result = InputInfo

    client_id: str
    content: tuple[Content, ...]
    delivery: Delivery = "queue"
    settings: Settings | None = None
    """For the turn of this message only."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema, of type object or any other, that the last answer of the turn has to match:
    its text is then one JSON document and nothing else. Kept with the message until its turn runs.
    A model that answers otherwise is told what is wrong, and the turn fails when that does not
    help."""
    environment: ClientEnvironment | None = None
    """Replaces what the client said when it connected."""


class SessionInterruptResult(Value, frozen=True, kw_only=True):
    interrupted: bool
    """False: no turn runs, or not the one that was named."""


class SessionInterruptParams(
    SessionParams, Request[SessionInterruptResult], frozen=True, kw_only=True
):
    """Interrupt the running turn, or only the one named; clean-up follows the answer.

    Messages of the same client that were sent before it are stopped, too: they are held, or the
    turn that has taken them is interrupted.
    """

    method = "session/interrupt"
    result = SessionInterruptResult

    turn_id: str | None = None


class SessionResumeParams(SessionParams, Request[Done], frozen=True, kw_only=True):
    """Release the queue that an interrupt, a failure or a restart has held."""

    method = "session/resume"
    result = Done


class SessionItemsParams(SessionParams, Request[ItemPage], frozen=True, kw_only=True):
    """Return a page of the transcript: the newest items, or those before or after a place.

    It has fewer than ``limit`` when they are large, and says so by ``earlier`` and ``later``.
    """

    method = "session/items"
    result = ItemPage

    before: int | None = None
    after: int | None = None
    limit: int = 50
    """1 to 1,000; a page may have fewer, and then tells that there are more."""


class SessionTurnParams(SessionParams, Request[TurnResult], frozen=True, kw_only=True):
    """Return how a turn stands or ended, however long ago, and what the agent said last in it.

    ``not_found`` for a turn that is not of the session.
    """

    method = "session/turn"
    result = TurnResult

    turn_id: str


class SessionEditInputParams(SessionParams, Request[InputInfo], frozen=True, kw_only=True):
    """Change a message that waits; ``not_pending`` when it was taken."""

    method = "session/editInput"
    result = InputInfo

    input_id: str
    content: tuple[Content, ...]


class SessionWithdrawInputParams(SessionParams, Request[InputInfo], frozen=True, kw_only=True):
    """Take back a message that waits; ``not_pending`` when it was taken."""

    method = "session/withdrawInput"
    result = InputInfo

    input_id: str


class SessionMoveInputParams(SessionParams, Request[Done], frozen=True, kw_only=True):
    """Put a message that waits before another one, or at the end."""

    method = "session/moveInput"
    result = Done

    input_id: str
    before: str | None = None


class SessionCompactParams(SessionParams, Request[TurnInfo], frozen=True, kw_only=True):
    """Begin a turn that replaces what was said so far by a summary of the session's model.

    The turn ends like any other: completed with a `context_summary`, or failed, and then nothing
    has changed. ``busy`` while a turn runs, ``bad_request`` when there is nothing to compact.
    """

    method = "session/compact"
    result = TurnInfo


class SettingChoice(Value, frozen=True, kw_only=True):
    value: str
    name: str = ""
    description: str = ""


class SettingOption(Value, frozen=True, kw_only=True):
    """One thing that can be set, with what it is set to and what it can be."""

    id: str
    """``model``, ``mode`` or ``effort``."""
    name: str
    value: str | None
    choices: tuple[SettingChoice, ...] = ()
    open: bool = False
    """Other values than the choices are taken, too."""


class SessionConfigureResult(Value, frozen=True, kw_only=True):
    settings: Settings
    """Those in force."""
    options: tuple[SettingOption, ...]


class SessionConfigureParams(
    SessionParams, Request[SessionConfigureResult], frozen=True, kw_only=True
):
    """Change the settings that are given, if any; the answer lists all there are."""

    method = "session/configure"
    result = SessionConfigureResult

    settings: Settings = Settings()
