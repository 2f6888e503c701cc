"""A reader's queue, and the follower of a message: every way an update can come."""

from __future__ import annotations

import pytest

from vaala.client.following import Follower, Next
from vaala.client.limits import SUBSCRIPTION_UPDATES_MAX
from vaala.client.reader import Reader
from vaala.testing.projection import Projection
from vaala_protocol.errors import NotFound, NotPending
from vaala_protocol.events import (
    CommandOutput,
    Event,
    Frame,
    InputChanged,
    ItemChanged,
    TurnChanged,
)
from vaala_protocol.items import UserMessage
from vaala_protocol.settings import Settings
from vaala_protocol.state import (
    ConversationInfo,
    InputInfo,
    InputState,
    SessionInfo,
    SessionSnapshot,
    Snapshot,
    TurnInfo,
    TurnState,
    UserInput,
)

INFO = ConversationInfo(id="c", created_at=1, updated_at=1)
ANY = CommandOutput(session_id="c", command_id="x", index=0, text="12345678")
Woken = list[str]


def _frame(seq: int, event: Event = ANY, *, first: int | None = None, epoch: str = "e") -> Frame:
    return Frame(epoch=epoch, first=first or seq, seq=seq, event=event)


def _snapshot(seq: int, *sessions: SessionSnapshot, epoch: str = "e") -> Snapshot:
    return Snapshot(epoch=epoch, seq=seq, conversation=INFO, sessions=sessions)


def _reader(woken: Woken | None = None) -> Reader[Snapshot, Frame]:
    heard: Woken = [] if woken is None else woken
    return Reader(lambda: heard.append("wake"))


def _all(reader: Reader[Snapshot, Frame]) -> list[int]:
    found: list[int] = []
    while (update := reader.next_nowait()) is not None:
        found.append(update.seq)
    return found


def test_frames_follow_their_snapshot_once_each() -> None:
    reader = _reader()
    reader.take_frame(_frame(3))  # before there is anything that it could change
    reader.take_snapshot(_snapshot(4))
    for seq in (3, 4, 5, 5, 6):
        reader.take_frame(_frame(seq))
    reader.take_frame(_frame(9, first=7))
    reader.take_snapshot(_snapshot(9))  # tells nothing new
    assert _all(reader) == [4, 5, 6, 9]
    assert not reader.wants_snapshot


@pytest.mark.parametrize(
    "wrong", [_frame(7), _frame(6, epoch="other"), _frame(7, first=5)], ids=str
)
def test_what_does_not_follow_is_a_loss_and_a_snapshot_is_due(wrong: Frame) -> None:
    woken: Woken = []
    reader = _reader(woken)
    reader.take_snapshot(_snapshot(4))
    reader.take_frame(_frame(5))
    reader.take_frame(wrong)
    reader.take_frame(_frame(8))
    assert not woken  # what came before the loss is read first
    assert _all(reader) == [4, 5]
    assert woken == ["wake"]
    assert reader.wants_snapshot
    reader.take_snapshot(_snapshot(8))
    assert _all(reader) == [8]


def test_a_slow_reader_loses_what_waits() -> None:
    reader = _reader()
    reader.take_snapshot(_snapshot(0))
    for seq in range(1, SUBSCRIPTION_UPDATES_MAX + 100):
        reader.take_frame(_frame(seq))
        assert len(reader) <= SUBSCRIPTION_UPDATES_MAX
    assert _all(reader) == []
    assert reader.wants_snapshot


def test_much_text_counts_as_many_frames() -> None:
    reader = _reader()
    reader.take_snapshot(_snapshot(0))
    big = CommandOutput(session_id="c", command_id="x", index=0, text="x" * 1024 * 1024)
    for seq in range(1, 12):
        reader.take_frame(_frame(seq, big))
    assert len(reader) < 9


async def test_a_reader_that_gets_nothing_says_so() -> None:
    reader = _reader()
    reader.close("deleted")
    with pytest.raises(NotFound, match="deleted"):
        await reader.ready()


async def test_a_closed_reader_ends_behind_what_waits() -> None:
    reader = _reader()
    reader.take_snapshot(_snapshot(1))
    reader.close()
    assert [update.seq async for update in reader] == [1]


TURN = TurnInfo(id="t", state="running", started_at=1, settings=Settings(), instance="i")
OTHER = TurnInfo(id="u", state="running", started_at=2, settings=Settings(), instance="i")
MESSAGE = UserMessage(
    id="m", at=1, created_at=1, session_id="c", turn_id="t", content=(), client_id="mine"
)


def _turn(state: TurnState) -> TurnInfo:
    return TurnInfo(id="t", state=state, started_at=1, settings=Settings(), instance="i")


def _input(state: InputState) -> InputInfo:
    return InputInfo(
        id="i", client_id="mine", source=UserInput(content=()), created_at=1, state=state
    )


def _session(
    turn: TurnInfo | None = None, *, taken: bool = False, waits: bool = False
) -> SessionSnapshot:
    return SessionSnapshot(
        info=SessionInfo(id="c", agent="default", created_at=1, settings=Settings()),
        settings=Settings(),
        items=(MESSAGE,) if taken else (),
        turn=turn,
        queue=(_input("waiting"),) if waits else (),
    )


def test_a_message_is_followed_to_the_end_of_its_turn() -> None:
    follower = Follower("c", "mine")
    assert follower.take(_snapshot(0, _session(OTHER))) is Next.WAIT
    follower.sent()
    for event in (
        InputChanged(session_id="c", input=_input("waiting")),
        TurnChanged(session_id="c", turn=TURN),
        ItemChanged(item=MESSAGE),
        TurnChanged(session_id="c", turn=OTHER),
    ):
        assert follower.take(_frame(1, event)) is Next.WAIT
    ended = TurnChanged(session_id="c", turn=_turn("failed"))
    assert follower.take(_frame(2, ended)) is Next.ENDED
    assert follower.turn_id == "t"


@pytest.mark.parametrize(
    ("session", "found"),
    [
        (_session(OTHER, waits=True), Next.WAIT),
        (_session(TURN, taken=True), Next.WAIT),
        (_session(_turn("completed"), taken=True), Next.ENDED),
        (_session(OTHER, taken=True), Next.ENDED),
        (_session(OTHER), Next.SEARCH),
    ],
)
def test_a_snapshot_in_the_midst_tells_how_far_it_is(session: SessionSnapshot, found: Next) -> None:
    follower = Follower("c", "mine")
    follower.sent()
    assert follower.take(_snapshot(9, session)) is found


def test_a_message_that_is_withdrawn_has_no_turn() -> None:
    follower = Follower("c", "mine")
    with pytest.raises(NotPending, match="withdrawn"):
        follower.take(_frame(1, InputChanged(session_id="c", input=_input("withdrawn"))))


def test_a_projection_takes_what_a_reader_yields() -> None:
    reader = _reader()
    reader.take_snapshot(_snapshot(4, _session()))
    reader.take_frame(_frame(5, TurnChanged(session_id="c", turn=TURN)))
    state = Projection()
    while (update := reader.next_nowait()) is not None:
        state.apply(update)
    assert state.state.sessions[0].turn == TURN
