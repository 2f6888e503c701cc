"""What the clients of a simulated runtime know: what was accepted, and what may be."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Message:
    """One message of a client, by its client id. Only one client edits it."""

    conversation_id: str
    client_id: str
    texts: set[str]
    """What it may say: more than one while the outcome of an edit is not known."""
    input_id: str | None = None
    """Known once the message was accepted."""
    withdrawn: bool = False
    """Its withdrawal was acknowledged."""
    maybe_withdrawn: bool = False


@dataclass
class Ledger:
    messages: dict[str, Message] = field(default_factory=dict)
    conversations: list[str] = field(default_factory=list)
    """Those that have an accepted message: they must be there for ever."""
    ops: int = 0
    crashes: int = 0
    lives: int = 0

    def sent(self, message: Message) -> None:
        """Note a message before its outcome is known."""
        self.messages[message.client_id] = message

    def accepted(self, message: Message, input_id: str) -> None:
        assert message.input_id in (None, input_id), "a retry has made a second input"
        message.input_id = input_id
        if message.conversation_id not in self.conversations:
            self.conversations.append(message.conversation_id)

    def of(self, conversation_id: str) -> list[Message]:
        return [one for one in self.messages.values() if one.conversation_id == conversation_id]
