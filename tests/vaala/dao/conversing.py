"""Conversations for tests of persistence: made, filled with a story, looked at."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.vaala.dao.stories import Story
from vaala.dao.entries import Entry, item_entry, step_entry, turn_entry
from vaala.dao.store import ConversationLog, ItemPage, ListQuery, Reader, SessionLog, Store
from vaala_protocol.content import TextContent
from vaala_protocol.ids import new_id
from vaala_protocol.items import AssistantMessage, Item, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import ConversationInfo, Location, SessionInfo, StepInfo, TurnInfo

HOME = Location(executor="local", directory="/home/me/project")


async def begin(
    store: Store,
    *,
    created_at: int = 1000,
    title: str = "",
    tags: tuple[str, ...] = (),
    directory: str = HOME.directory,
    ephemeral: bool = False,
) -> tuple[ConversationLog, SessionLog]:
    """Create a conversation, staged, and open its root session."""
    conversation_id = new_id()
    info = ConversationInfo(
        id=conversation_id,
        created_at=created_at,
        updated_at=created_at,
        title=title,
        tags=tags,
        locations=(Location(executor="local", directory=directory),),
        ephemeral=ephemeral,
    )
    root = SessionInfo(
        id=conversation_id, agent="default", created_at=created_at, settings=Settings(model="m")
    )
    log = await store.create(info, root)
    return log, await log.open_session(conversation_id)


def exchange(
    question: str, answer: str, *, at: int = 1, now: int = 2000, number: int = 1
) -> list[Entry]:
    """Return a whole turn: a message and its answer."""
    turn = TurnInfo(
        id=f"turn-{number}", state="running", started_at=now, settings=Settings(), instance="i"
    )
    step = StepInfo(turn_id=turn.id, number=1, model="m", started_at=now)
    asked = UserMessage(
        id=f"q-{number}", at=at, created_at=now, turn_id=turn.id, step=1,
        content=(TextContent(text=question),),
    )  # fmt: skip
    said = AssistantMessage(
        id=f"a-{number}", at=at + 1, created_at=now, turn_id=turn.id, step=1, text=answer
    )
    return [
        turn_entry(turn),
        step_entry(step),
        item_entry(asked),
        item_entry(said),
        {"t": "step", "turnId": turn.id, "number": 1, "endedAt": now},
        {"t": "turn", "id": turn.id, "state": "completed", "endedAt": now, "steps": 1},
    ]


async def say(session: SessionLog, question: str, answer: str = "yes", *, now: int = 2000) -> None:
    """Append a turn and apply it, as its session would."""
    number = session.seq
    at = session.state.head.last_at + 1
    await write(session, exchange(question, answer, at=at, now=now, number=number))


async def write(session: SessionLog, entries: Sequence[Entry]) -> None:
    await session.append(entries)
    for entry in entries:
        session.state.apply(entry)


async def tell(session: SessionLog, story: Story, turns: int, *, checkpoints: float = 0.3) -> None:
    """Append what a story tells; it applies its entries to the session's state itself."""
    story.state = session.state
    for batch in story.batches(turns, checkpoints=checkpoints):
        await session.append(batch)


async def all_items(session: SessionLog) -> list[Item]:
    return [item async for items in session.history() for item in items]


async def forward(session: SessionLog, limit: int) -> list[Item]:
    """Page from the oldest item to the newest."""
    found: list[Item] = []
    page = await session.items(after=0, limit=limit)
    found += page.items
    while page.later:
        page = await session.items(after=page.items[-1].at, limit=limit)
        found += page.items
    return found


async def backward(session: SessionLog, limit: int) -> list[Item]:
    """Page from the newest item to the oldest."""
    page: ItemPage = await session.items(limit=limit)
    found = list(page.items)
    while page.earlier:
        page = await session.items(before=page.items[0].at, limit=limit)
        found = [*page.items, *found]
    return found


async def listed(store: Reader, query: ListQuery | None = None) -> list[str]:
    """Return the ids of the list, page by page."""
    wanted = query or ListQuery(archived=None)
    page = await store.list(wanted, limit=3)
    found = [row.id for row in page.rows]
    while page.cursor is not None:
        page = await store.list(wanted, page.cursor, limit=3)
        found += [row.id for row in page.rows]
    return found


def files_below(root: Path) -> dict[str, bytes]:
    """Return every file with its content, to see that nothing was changed."""
    return {
        str(path.relative_to(root)): path.read_bytes() if path.is_file() else b""
        for path in sorted(root.rglob("*"))
    }
