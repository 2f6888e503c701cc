"""The messages of a conversation as the scripted model keeps them, read from the end.

A history can be long and is there only as bytes. What a step needs stands near its end: the last
answer, which tells the place in the script, and results of late steps. So the beginnings of
messages are searched backwards, and only what is needed is decoded. That is safe: inside a JSON
text a quotation mark is escaped, so ``{"answer":`` stands only where a message begins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from vaala.models.base import AssistantSaid, CallResult, Message, UserSaid
from vaala_protocol.base import decode, encode
from vaala_protocol.content import text_of

API = "scripted"
_ANSWER = b'{"answer":'
_USER = b'{"user":'


def encode_messages(messages: Sequence[Message]) -> bytes:
    return b",".join(encode(_message(message)) for message in messages)


def _message(message: Message) -> dict[str, Any]:
    match message:
        case UserSaid():
            return {"user": text_of(message.content)}
        case CallResult():
            return {"result": text_of(message.content), "name": message.name}
        case AssistantSaid():
            own = message.private is not None and message.private.api == API
            body = {"text": message.text, "calls": [[c.name, c.arguments] for c in message.calls]}
            if own and message.private is not None:
                return {"answer": message.private.data, **body}
            return {"other": body}


class Transcript:
    """All messages of a request: ``history`` and, after it, ``messages``."""

    def __init__(self, history: bytes, messages: bytes) -> None:
        self._history = history
        self._late: list[dict[str, Any]] = decode(b"[%s]" % messages)

    def answers(self) -> Iterator[list[dict[str, Any]]]:
        """Give the scripted answers from the newest on, each with the messages that followed."""
        late = self._late
        end = len(late)
        for at in range(end - 1, -1, -1):
            if "answer" in late[at]:
                yield late[at:end]
                end = at
        begun = late[:end]
        stop = len(self._history)
        while (at := self._history.rfind(_ANSWER, 0, stop)) >= 0:
            yield decode(b"[%s]" % self._history[at:stop].rstrip(b",")) + begun
            begun = []
            stop = at

    def prompt(self) -> str:
        """Return the newest message of the user."""
        for message in reversed(self._late):
            if "user" in message:
                return str(message["user"])
        at = self._history.rfind(_USER)
        if at < 0:
            return ""
        end = self._history.find(b',{"', at)
        return str(decode(self._history[at : end if end >= 0 else None])["user"])
