"""Driving a runtime in tests: scripted models, conversations in memory, waiting for events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

import vaala
from vaala.handle import ConversationHandle
from vaala.models.base import Model
from vaala.models.scripted import ScriptedModel
from vaala.runtime import Runtime
from vaala.stream import Subscription, Update
from vaala_protocol.events import Frame, ItemChanged, TurnChanged
from vaala_protocol.items import Approval, Item, ToolCall
from vaala_protocol.settings import Mode, Settings
from vaala_protocol.state import Snapshot


def script(*steps: Any, **options: Any) -> ScriptedModel:
    return ScriptedModel({"steps": list(steps)}, **options)


@asynccontextmanager
async def conversation(
    model: Model | Sequence[Model], directory: Path, *, mode: Mode = "full", **options: Any
) -> AsyncGenerator[tuple[Runtime, ConversationHandle]]:
    """A runtime in memory with one conversation."""
    async with vaala.open_runtime(models=model, **options) as runtime:
        yield (
            runtime,
            await runtime.create_conversation(
                directory=str(directory), settings=Settings(mode=mode)
            ),
        )


async def until(updates: Subscription, found: Callable[[Update], bool]) -> Update:
    """Return the first update that fits."""
    async for update in updates:
        if found(update):
            return update
    raise AssertionError("the conversation closed before that")


def is_item(kind: type[Item], **fields: Any) -> Callable[[Update], bool]:
    """Fits an item event (not a live one) of this kind with these fields."""

    def fits(update: Update) -> bool:
        match update:
            case Frame(event=ItemChanged(item=item, live=False)):
                return isinstance(item, kind) and all(
                    getattr(item, name) == value for name, value in fields.items()
                )
            case _:
                return False

    return fits


def is_turn(state: str) -> Callable[[Update], bool]:
    def fits(update: Update) -> bool:
        match update:
            case Frame(event=TurnChanged(turn=turn)):
                return turn.state == state
            case _:
                return False

    return fits


async def pending_approval(updates: Subscription) -> Approval:
    update = await until(updates, is_item(Approval, state="pending"))
    assert isinstance(update, Frame)
    assert isinstance(update.event, ItemChanged)
    assert isinstance(update.event.item, Approval)
    return update.event.item


async def calls(conversation: ConversationHandle) -> list[ToolCall]:
    page = await conversation.items(limit=200)
    return [item for item in page.items if isinstance(item, ToolCall)]


async def snapshot(conversation: ConversationHandle) -> Snapshot:
    async with conversation.subscribe() as updates:
        update = await anext(updates)
    assert isinstance(update, Snapshot)
    return update


async def idle(conversation: ConversationHandle) -> None:
    """Wait until no turn runs."""
    async with conversation.subscribe() as updates:
        async for update in updates:
            match update:
                case Snapshot(sessions=sessions):
                    if all(s.turn is None or s.turn.state != "running" for s in sessions):
                        break
                case Frame(event=TurnChanged(turn=turn)) if turn.state != "running":
                    break
                case _:
                    pass
    await trio.testing.wait_all_tasks_blocked()
