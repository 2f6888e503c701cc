"""Entries of a session's stream: how turns, steps, inputs and items are written down.

An entry is a JSON object whose ``t`` tells what it is about:

    format      {major, minor}: before the first entry of a new version
    session     the header: agent, settings, parent
    origin      {hash}: the place that this stream was written at; see `vaala.dao.metadata`
    input       pending input, by id
    turn        a turn, by id
    step        a step, by turn and number
    item        an item, by id
    checkpoint  the state so far, whole (`vaala.dao.state`)

The first entry of a thing is whole; a later one carries its key and the fields that changed, each
whole; null takes a field back to its default. An entry never holds the id of its conversation or,
for the root session, of its session: the place in the store is the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from vaala_protocol.base import changed, to_json
from vaala_protocol.items import Item, encode_item
from vaala_protocol.state import InputInfo, SessionInfo, StepInfo, TurnInfo

Entry: TypeAlias = dict[str, Any]

FORMAT_MAJOR = 1
FORMAT_MINOR = 0

ROOT_STREAM = "main"
"""The stream of the root session, whose id is the conversation's."""
METADATA_STREAM = "metadata"


def format_entry() -> Entry:
    return {"t": "format", "major": FORMAT_MAJOR, "minor": FORMAT_MINOR}


def origin_entry(origin: str) -> Entry:
    return {"t": "origin", "hash": origin}


def session_entry(info: SessionInfo) -> Entry:
    fields = to_json(info)
    fields.pop("id")
    return {"t": "session", **fields}


def input_entry(new: InputInfo, old: InputInfo | None = None) -> Entry:
    return _entry("input", ("id",), to_json(new), to_json(old) if old else None)


def turn_entry(new: TurnInfo, old: TurnInfo | None = None) -> Entry:
    return _entry("turn", ("id",), to_json(new), to_json(old) if old else None)


def step_entry(new: StepInfo, old: StepInfo | None = None) -> Entry:
    return _entry("step", ("turnId", "number"), to_json(new), to_json(old) if old else None)


def item_entry(new: Item, old: Item | None = None) -> Entry:
    return _entry("item", ("id",), encode_item(new), encode_item(old) if old else None)


def merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> Entry:
    """Return ``old`` with the fields of a later entry laid over it."""
    fields = {**old, **patch}
    return {name: value for name, value in fields.items() if value is not None}


def _entry(
    tag: str, keys: tuple[str, ...], new: dict[str, Any], old: dict[str, Any] | None
) -> Entry:
    if old is None:
        return {"t": tag, **new}
    return {"t": tag, **{key: new[key] for key in keys}, **changed(old, new)}
