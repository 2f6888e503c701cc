"""The system prompt: the agent's instructions and where it works."""

from __future__ import annotations

import platform
from datetime import date

from vaala_protocol.state import Location


def system_prompt(instructions: str, locations: tuple[Location, ...], today: date) -> str:
    """Return the instructions with the facts of the environment; changes at most once a day."""
    lines = [f"Date: {today.isoformat()}", f"System: {platform.system()} {platform.machine()}"]
    for location in locations:
        place = "" if location.executor == "local" else f" on {location.executor}"
        lines.append(f"Working directory{place}: {location.directory}")
        lines.extend(f"Also accessible: {directory}" for directory in location.additional)
    return f"{instructions.strip()}\n\n" + "\n".join(lines)
