"""The one vocabulary between the agent loop and every model.

A model encodes messages into its own wire format and streams events back. The loop keeps closed
steps encoded, so that a long history costs a copy of bytes and not a pass over its messages.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct, field

from vaala.models.options import Defaults
from vaala_protocol.content import Content
from vaala_protocol.items import Private
from vaala_protocol.settings import ErrorKind, Usage

if TYPE_CHECKING:
    from vaala.models.limiter import Limiter

FinishReason: TypeAlias = Literal[
    "stop",
    "tool_calls",
    "length",
    "refusal",
    "content_filter",
    "malformed_call",
    "pause",
    "unknown",
]


class ToolSpec(Struct, frozen=True):
    """A tool as the model sees it; ``parameters`` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class CallPart(Struct, frozen=True):
    """A tool call in the history. ``id`` is ours; ``arguments`` is the text of a JSON object."""

    id: str
    name: str
    arguments: str
    private: Private | None = None


class ReasoningPart(Struct, frozen=True):
    text: str
    private: Private | None = None


class UserSaid(Struct, frozen=True):
    """Never empty: at least one block, and no blank text."""

    content: tuple[Content, ...]


class AssistantSaid(Struct, frozen=True):
    """Never empty: text that is not blank, or at least one call."""

    text: str
    reasoning: tuple[ReasoningPart, ...] = ()
    calls: tuple[CallPart, ...] = ()
    private: Private | None = None


class CallResult(Struct, frozen=True):
    """The one result of a call; follows the `AssistantSaid` with the call, in call order."""

    id: str
    name: str
    content: tuple[Content, ...]
    is_error: bool = False


Message: TypeAlias = UserSaid | AssistantSaid | CallResult


class Deadlines(Struct, frozen=True):
    """Seconds; silence is the time between two bytes, there is no limit on the whole."""

    connect_s: float = 10.0
    first_byte_s: float = 120.0
    """From the first byte of the request to the first byte of the answer."""
    silence_s: float = 120.0
    progress_s: float = 900.0
    """Between two events of the answer: keep-alives break the silence, but not this."""


class OutputFormat(Struct, frozen=True):
    """The answer that has no calls shall be one JSON document that matches ``schema``.

    A format asks for it in its own way where model and server know one, else in the instructions;
    whoever gets the answer checks it.
    """

    schema: dict[str, Any]
    again: bool = False
    """An answer did not match: what is wanted now is the document, so that tools may be left out
    where the two do not go together."""


class ModelRequest(Struct, frozen=True):
    """One call. ``history`` holds the closed steps as `Model.encode` made them, joined by commas;
    ``messages`` is what came after, still open."""

    instructions: str
    tools: tuple[ToolSpec, ...]
    history: bytes
    messages: tuple[Message, ...]
    effort: str | None = None
    output_tokens_max: int | None = None
    room_tokens: int | None = None
    """About what the window has left for the answer; a format that must send a limit sends no
    larger one. None: not known."""
    options: dict[str, Any] = field(default_factory=dict)
    output: OutputFormat | None = None
    deadlines: Deadlines | None = None
    """None: those of the model."""


class FirstByte(Struct, frozen=True):
    """The answer has begun; nothing to show yet."""


class TextDelta(Struct, frozen=True):
    text: str


class ReasoningDelta(Struct, frozen=True):
    text: str


class CallStart(Struct, frozen=True):
    """A tool call whose name is complete. ``index`` numbers the calls of the answer from 0."""

    index: int
    name: str


class CallDelta(Struct, frozen=True):
    index: int
    arguments: str


class CallEnd(Struct, frozen=True):
    """The call is complete as far as the stream goes; ``arguments`` is its whole text."""

    index: int
    arguments: str


class ProviderBlob(Struct, frozen=True):
    """Opaque data to be kept with a part of the answer and sent back with it."""

    part: Literal["message", "reasoning"] | int
    """An int is the index of a call."""
    data: dict[str, Any]


class UsageReport(Struct, frozen=True):
    """The usage of this call so far; a later report replaces an earlier one."""

    usage: Usage


class Finish(Struct, frozen=True):
    """The terminal event: without it the answer is incomplete. ``raw`` is the provider's word."""

    reason: FinishReason
    raw: str = ""


ModelEvent: TypeAlias = (
    FirstByte
    | TextDelta
    | ReasoningDelta
    | CallStart
    | CallDelta
    | CallEnd
    | ProviderBlob
    | UsageReport
    | Finish
)


class ModelFailure(Exception):
    """A model call failed; mapped once, at the client of the provider.

    ``message`` is one line for people, without secrets. ``retry_after_s`` is the provider's lower
    bound on a wait.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        *,
        retryable: bool = False,
        retry_after_s: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s
        self.status = status


class Model(ABC):
    """A model at a provider. Stateless between calls; may be used by many sessions at once."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What a user writes to choose it, "provider/model"."""

    @property
    @abstractmethod
    def provider(self) -> str: ...

    @property
    @abstractmethod
    def api(self) -> str:
        """The wire format; encoded history is good for every model of the same format."""

    @property
    @abstractmethod
    def window_tokens(self) -> int | None:
        """The context window; None when it is not known."""

    @property
    def is_near(self) -> bool:
        """Its server runs on this machine or in this network, as such of open models do: they may
        cut a request to their window without a word."""
        return False

    @property
    def deadlines(self) -> Deadlines:
        """The deadlines of a request that names none."""
        return Deadlines()

    @property
    def limiter(self) -> Limiter | None:
        """What its calls share with those of other models when the provider refuses some; None:
        each call waits by itself."""
        return None

    @property
    def defaults(self) -> Defaults:
        """What it is asked with where nobody says otherwise."""
        return Defaults()

    @abstractmethod
    def encode(self, messages: Sequence[Message]) -> bytes:
        """Return the messages in the wire format, as JSON values joined by commas.

        Pure, and local: encoding pieces and joining them with commas equals encoding the whole.
        """

    @abstractmethod
    def stream(
        self, request: ModelRequest
    ) -> AbstractAsyncContextManager[AsyncIterator[ModelEvent]]:
        """Call the model. Entering sends the request; iterating yields events as they come.

        Raises `ModelFailure`, from entering or from iterating; a stream that ends without its
        terminal event raises one of kind ``incomplete``. Cancel, or leaving the context, closes
        the request at once.
        """


class Models(ABC):
    """The models of a runtime, by name."""

    async def resolve_with(self, name: str | None, keys: Mapping[str, str]) -> tuple[Model, str]:
        """Like `resolve`, for a client that has ``keys``: variables of providers, by name.

        They go below the configuration and above the environment of this process, and serve this
        one answer: what they gave is given to nobody who does not have them. By default no model
        depends on them.
        """
        return await self.resolve(name)

    @property
    def names(self) -> tuple[str, ...]:
        """Names to choose from, as far as they are known without asking anybody."""
        return ()

    @abstractmethod
    async def resolve(self, name: str | None) -> tuple[Model, str]:
        """Return the model called ``name`` and one line that says why it was chosen.

        With None the runtime's default is chosen. Raises `vaala_protocol.errors.BadRequest` that
        names what was looked for and the ways out.
        """
