"""Pages and snapshots of large items: what is left out is what is furthest away."""

from __future__ import annotations

import pytest

from vaala.server import limits
from vaala.server.api.fitting import fitting_page, fitting_snapshot
from vaala.server.api.frames import resync_message
from vaala_protocol.calls import OtherDetails
from vaala_protocol.content import TextContent
from vaala_protocol.errors import Overloaded
from vaala_protocol.items import AssistantMessage, Item, ToolCall
from vaala_protocol.pages import ItemPage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    ConversationInfo,
    InputInfo,
    SessionInfo,
    SessionSnapshot,
    Snapshot,
    UserInput,
)

QUARTER = "x" * (limits.PAGE_CHARACTERS_MAX // 4)


def said(at: int, text: str = QUARTER) -> AssistantMessage:
    return AssistantMessage(
        id=f"i{at}", session_id="s", turn_id="t", at=at, created_at=at, text=text
    )


def ats(items: tuple[Item, ...]) -> list[int]:
    return [item.at for item in items]


def page(*items: Item) -> ItemPage:
    return ItemPage(items=items, earlier=False, later=False)


def session(id: str, *items: Item) -> SessionSnapshot:
    info = SessionInfo(id=id, agent="default", created_at=1, settings=Settings())
    return SessionSnapshot(info=info, settings=Settings(), items=items)


def snapshot(*sessions: SessionSnapshot) -> Snapshot:
    info = ConversationInfo(id="c", created_at=1, updated_at=1)
    return Snapshot(epoch="e", seq=1, conversation=info, sessions=sessions)


def test_a_page_keeps_what_is_nearest_to_where_it_was_asked_for() -> None:
    whole = page(*map(said, range(6)))
    back = fitting_page(whole, forward=False)
    assert (ats(back.items), back.earlier, back.later) == ([2, 3, 4, 5], True, False)
    on = fitting_page(whole, forward=True)
    assert (ats(on.items), on.earlier, on.later) == ([0, 1, 2, 3], False, True)


def test_a_page_that_fits_is_the_same_and_none_is_empty() -> None:
    small = page(*map(said, range(4)))
    assert fitting_page(small, forward=False) is small
    huge = page(said(1), said(2, QUARTER * 5))
    assert ats(fitting_page(huge, forward=False).items) == [2]
    assert fitting_page(page(), forward=True).items == ()


def test_a_snapshot_keeps_the_newest_of_all_sessions_without_a_gap() -> None:
    root = session("root", *map(said, (1, 4, 6, 7)))
    child = session("child", *map(said, (2, 3, 5)))
    shown = fitting_snapshot(snapshot(root, child))
    assert [ats(one.items) for one in shown.sessions] == [[4, 6, 7], [5]]
    idle = session("idle")
    small = snapshot(session("root", *map(said, range(4))), idle)
    assert fitting_snapshot(small) is small


def test_what_runs_or_waits_is_in_every_snapshot() -> None:
    call = ToolCall(
        id="call", session_id="s", turn_id="t", at=0, created_at=0, name="exec_command",
        arguments="{}", title="a command", state="running",
        details=OtherDetails(title="a command"),
    )  # fmt: skip
    shown = fitting_snapshot(snapshot(session("root", call, *map(said, range(1, 7)))))
    assert ats(shown.sessions[0].items) == [0, 3, 4, 5, 6]


def test_a_snapshot_that_no_message_holds_is_not_sent() -> None:
    waiting = InputInfo(
        id="q", client_id="q", created_at=1,
        source=UserInput(content=(TextContent(text="\x01" * 12_000_000),)),
    )  # fmt: skip
    root = session("root")
    queue = SessionSnapshot(info=root.info, settings=root.settings, items=(), queue=(waiting,))
    with pytest.raises(Overloaded, match="a snapshot of 72,"):
        resync_message("c", snapshot(queue))
