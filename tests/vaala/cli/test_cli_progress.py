"""`Progress`: which of a shared conversation's turns, approvals and messages are ours."""

from __future__ import annotations

from typing import Any

from vaala.cli.progress import Progress
from vaala_protocol.content import TextContent
from vaala_protocol.events import Frame, InputChanged, ItemChanged, SessionOpened, TurnChanged
from vaala_protocol.items import Approval, Item, Question, UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import InputInfo, SessionInfo, SessionSnapshot, TurnInfo, UserInput

ROOT = "root"


def _frame(event: Any) -> Frame:
    return Frame(epoch="e", first=1, seq=1, event=event)


def _item(kind: type[Item], id: str, turn: str, session: str = ROOT, **fields: Any) -> Frame:
    item = kind(id=id, session_id=session, turn_id=turn, at=1, created_at=1, **fields)
    return _frame(ItemChanged(item=item))


def _message(turn: str, client_id: str) -> Frame:
    return _item(UserMessage, f"m-{turn}", turn, content=(), client_id=client_id)


def _approval(id: str, turn: str, session: str = ROOT) -> Frame:
    return _item(Approval, id, turn, session, tool_call_id="c", digest="", options=())


def _turn(id: str, state: Any = "running") -> Frame:
    turn = TurnInfo(id=id, state=state, settings=Settings(), started_at=1, instance="i")
    return _frame(TurnChanged(session_id=ROOT, turn=turn))


def _input(id: str, client_id: str, state: Any) -> Frame:
    source = UserInput(content=(TextContent(text="x"),))
    info = InputInfo(
        id=id, client_id=client_id, source=source, created_at=1, delivery="queue", state=state,
        place=1,
    )  # fmt: skip
    return _frame(InputChanged(session_id=ROOT, input=info))


def _child(id: str, turn: str) -> Frame:
    info = SessionInfo(
        id=id, agent="a", created_at=1, settings=Settings(), parent=ROOT, spawned_by=turn
    )
    return _frame(SessionOpened(session=SessionSnapshot(info=info, settings=Settings(), items=())))


def _after(*frames: Frame, everything: bool = False) -> Progress:
    progress = Progress(ROOT, everything=everything)
    progress.expect("mine")
    for frame in frames:
        progress.update(frame)
    return progress


def test_what_waits_in_the_turn_of_another_is_left_to_them() -> None:
    others = (
        _turn("t1"), _message("t1", "theirs"), _approval("a1", "t1"),
        _item(Question, "q1", "t1", text="?"), _child("s1", "t1"), _approval("a2", "t1", "s1"),
    )  # fmt: skip
    progress = _after(*others)
    assert (progress.next_approval(), progress.next_question()) == (None, None)
    assert (progress.running, progress.ours, progress.unfinished) == ("t1", None, False)
    progress = _after(*others, everything=True)
    assert progress.next_approval() is progress.approvals["a1"]
    assert progress.next_question() is progress.questions["q1"]
    assert progress.ours == "t1"


def test_what_waits_in_our_turn_and_in_agents_that_it_started_is_ours() -> None:
    progress = _after(
        _turn("t1"), _message("t1", "theirs"), _approval("a1", "t1"), _turn("t1", "completed"),
        _turn("t2"), _message("t2", "mine"), _child("s2", "t2"), _approval("a2", "t9", "s2"),
    )  # fmt: skip
    assert progress.next_approval() is progress.approvals["a2"]
    assert progress.ours == "t2"
    progress.update(_turn("t2", "completed"))
    assert progress.ours is None


def test_our_message_waits_until_a_turn_takes_it() -> None:
    progress = _after(_input("i0", "theirs", "waiting"), _input("i1", "mine", "waiting"))
    assert (progress.waiting, progress.unfinished) == ("i1", True)
    progress.update(_input("i1", "mine", "consumed"))
    assert progress.waiting is None
    progress.update(_input("i1", "mine", "held"))
    assert progress.waiting == "i1"
    progress.update(_message("t1", "mine"))
    assert progress.waiting is None
