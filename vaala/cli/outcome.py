"""What a command ends with, by how a turn ended."""

from __future__ import annotations

from vaala.cli.exits import DONE, FAILED, INTERRUPTED, REFUSED, UNREACHABLE
from vaala_protocol.state import TurnInfo

_LIMITS = frozenset({"max_tokens", "max_steps", "budget", "loop", "refusal"})


def code_of(turn: TurnInfo, *, network: bool = False) -> int:
    """Return the exit code; ``network``: the turn's last call of the model did not get through."""
    if turn.state == "interrupted":
        return REFUSED if turn.interrupted_by == "budget" else INTERRUPTED
    if turn.stop_reason in _LIMITS:
        return REFUSED
    if turn.state == "failed":
        return UNREACHABLE if network else FAILED
    return DONE
