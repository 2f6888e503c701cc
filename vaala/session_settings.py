"""What can be set in a session, and setting it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from vaala.changes import item_change, settings_change
from vaala.checks import checked_settings
from vaala.models.base import Models
from vaala_protocol.errors import Refused
from vaala_protocol.settings import EFFORTS, MODES, Settings

if TYPE_CHECKING:
    from vaala.session import Session
    from vaala_protocol.methods.session import SettingOption

MODE_MEANINGS = {
    "read-only": "Reads; changes and commands are refused",
    "ask": "Reads; asks before it changes anything or runs a command",
    "auto-edit": "Changes files; asks before it runs a command",
    "full": "Runs everything without asking",
}


async def configure(session: Session, settings: Settings) -> Settings:
    """Change what is given; return the settings in force. Raises `BadRequest`, `NotDurable`."""
    new = checked_settings(settings.over(session.state.head.settings))
    turn = session.turn
    where = (turn.id, turn.step_number) if turn else (None, None)
    change = settings_change(session.next_at(), new, *where)
    await session.write([item_change(change)], keep=False)
    return new


async def options_of(
    session: Session, keys: Mapping[str, str] | None = None
) -> tuple[SettingOption, ...]:
    """Return what can be set, with what is in force now.

    The model in force is looked for like a turn does it, which may ask a server on this machine.
    ``keys`` are variables of providers; None: those of the client that the session works for.
    """
    from vaala_protocol.methods.session import SettingChoice, SettingOption

    definitions = session.around.definitions
    settings = session.state.head.settings
    if session.info.agent in definitions.agents:
        settings = settings.over(definitions.agent(session.info.agent).settings)
    keys = session.around.environment.keys if keys is None else keys
    model = await _model(definitions.models, settings.model, keys)
    names = list(definitions.models.names)
    if model is not None and model not in names:
        names.append(model)
    return (
        SettingOption(
            id="model", name="Model", value=model, open=True,
            choices=tuple(SettingChoice(value=name, name=name) for name in names),
        ),
        SettingOption(
            id="mode", name="Mode", value=settings.mode or "ask",
            choices=tuple(
                SettingChoice(value=mode, name=mode, description=MODE_MEANINGS[mode])
                for mode in MODES
            ),
        ),
        SettingOption(
            id="effort", name="Effort", value=settings.effort, open=True,
            choices=tuple(SettingChoice(value=effort, name=effort) for effort in EFFORTS),
        ),
    )  # fmt: skip


async def _model(models: Models, name: str | None, keys: Mapping[str, str]) -> str | None:
    """Return the name of the model in force; what was asked for when there is no such model."""
    try:
        model, _ = await models.resolve_with(name, keys)
    except Refused:
        return name
    return model.name
