"""Settings of a session, usage of a model, and the stop reasons of a turn."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from vaala_protocol.base import Value

Mode: TypeAlias = Literal["read-only", "ask", "auto-edit", "full"]
MODES: tuple[Mode, ...] = ("read-only", "ask", "auto-edit", "full")
EFFORTS = ("default", "none", "minimal", "low", "medium", "high", "xhigh", "max")
"""What most providers call them; others are passed on as they are. With ``default`` a model is not
told how hard to think."""

StopReason: TypeAlias = Literal[
    "end_turn", "max_tokens", "max_steps", "budget", "loop", "refusal", "interrupted", "failed"
]
ErrorKind: TypeAlias = Literal[
    "auth",
    "billing",
    "rate_limit",
    "overloaded",
    "context_overflow",
    "invalid_request",
    "refused",
    "network",
    "incomplete",
    "invalid_output",
    "storage",
    "bug",
]


class Settings(Value, frozen=True, kw_only=True):
    """What a session runs with; None means "not set here, look one level up"."""

    model: str | None = None
    effort: str | None = None
    """How hard the model should think; ``default``: as it does by itself."""
    mode: Mode | None = None
    options: dict[str, Any] = {}
    """Fields of the request to the model, by the provider's names; ``max_output_tokens`` is known
    to all. Null takes away what is set one level up."""

    def over(self, base: Settings) -> Settings:
        """Return these settings with what they leave open taken from ``base``."""
        return Settings(
            model=self.model if self.model is not None else base.model,
            effort=self.effort if self.effort is not None else base.effort,
            mode=self.mode if self.mode is not None else base.mode,
            options={**base.options, **self.options},
        )


class Usage(Value, frozen=True, kw_only=True):
    """Tokens in disjoint classes: their sum is what was processed."""

    input: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            output=self.output + other.output,
            reasoning=self.reasoning + other.reasoning,
        )

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write + self.output + self.reasoning
