"""`Follower`: finds out which turn takes a message, and when that turn has ended.

Without I/O: it is given what a subscription yields, in order, and says what to do next.
"""

from __future__ import annotations

from enum import Enum, auto

from vaala.interface import Update
from vaala_protocol.errors import NotPending
from vaala_protocol.events import Event, InputChanged, ItemChanged, TurnChanged
from vaala_protocol.items import Item, UserMessage
from vaala_protocol.state import InputInfo, Snapshot


class Next(Enum):
    WAIT = auto()
    """For the next update."""
    SEARCH = auto()
    """The message was taken while nobody looked: its turn is to be found in the transcript."""
    ENDED = auto()
    """The turn ``turn_id`` does not run any more."""


class Follower:
    """Follows one message of a session, from before it is sent."""

    def __init__(self, session_id: str, client_id: str) -> None:
        self.turn_id: str | None = None
        self._session_id = session_id
        self._client_id = client_id
        self._is_sent = False
        self._found: Next = Next.WAIT

    def sent(self) -> None:
        """The server has the message: from now on it waits, or a turn has taken it."""
        self._is_sent = True

    def found(self, message: UserMessage) -> None:
        """The message was found in the transcript."""
        self.turn_id = message.turn_id

    def take(self, update: Update) -> Next:
        """Take an update. Raises `NotPending` when the message was withdrawn."""
        if isinstance(update, Snapshot):
            return self._whole(update)
        return self._event(update.event)

    def _whole(self, snapshot: Snapshot) -> Next:
        for session in snapshot.sessions:
            if session.info.id != self._session_id:
                continue
            for item in session.items:
                self._look(item)
            if self.turn_id is None:
                waits = any(one.client_id == self._client_id for one in session.queue)
                return Next.WAIT if waits or not self._is_sent else Next.SEARCH
            turn = session.turn
            runs = turn is not None and turn.id == self.turn_id and turn.state == "running"
            return Next.WAIT if runs else Next.ENDED
        return Next.WAIT  # the session is only being opened

    def _event(self, event: Event) -> Next:
        match event:
            case ItemChanged(item=item):
                self._look(item)
            case InputChanged(
                input=InputInfo(client_id=self._client_id, state="withdrawn") as gone
            ):
                raise NotPending(f"input {gone.id} was withdrawn")
            case TurnChanged(turn=turn) if turn.id == self.turn_id and turn.state != "running":
                return Next.ENDED
            case _:
                pass
        return Next.WAIT

    def _look(self, item: Item) -> None:
        if isinstance(item, UserMessage) and item.client_id == self._client_id:
            self.turn_id = item.turn_id
