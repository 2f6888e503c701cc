"""What is written down stays in order, once, and nothing is told before it is on disk."""

from __future__ import annotations

from random import Random

import pytest
import trio

from tests.vaala.core.logs import FAULTS, SESSION, Fault, FlakyLog, entries_of, new_log, reopened
from tests.vaala.core.seeds import run_seeds
from vaala.changes import Change, input_change, item_change
from vaala.observer import Observer
from vaala.recorder import Recorder, Unwritable
from vaala_protocol.errors import BadRequest, NotDurable
from vaala_protocol.events import ItemChanged
from vaala_protocol.items import Notice
from vaala_protocol.state import InputInfo, UserInput


def _note(number: int, text: str = "") -> Change:
    notice = Notice(
        id=f"note-{number}", at=number + 1, created_at=1, session_id=SESSION, turn_id="turn",
        step=1, level="info", text=text,
    )  # fmt: skip
    return item_change(notice)


def _name(change: Change) -> str:
    assert isinstance(change.event, ItemChanged)
    return change.event.item.id


class _Told:
    """Collects what is published, and checks that it was applied by then."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.recorder: Recorder | None = None

    def __call__(self, change: Change) -> None:
        assert self.recorder is not None
        name = _name(change)
        assert name in self.recorder.log.state.open
        self.names.append(name)


async def _recorder(storage: FlakyLog) -> tuple[Recorder, _Told]:
    told = _Told()
    told.recorder = Recorder(await new_log(storage), told, Observer())
    return told.recorder, told


async def _written(storage: FlakyLog) -> list[str]:
    return [entry["id"] for entry in await entries_of(storage) if entry["t"] == "item"]


async def test_a_full_disk_keeps_what_is_kept_and_forgets_what_was_asked() -> None:
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    storage.faults.extend(["full"] * 3)
    for number, keep in ((1, True), (2, False), (3, True)):
        with pytest.raises(NotDurable, match="no space left"):
            await recorder.write([_note(number)], keep=keep)
    assert recorder.unsaved
    assert told.names == []
    assert recorder.log.state.open == {}
    await recorder.write([_note(4)], keep=False)
    assert told.names == await _written(storage) == ["note-1", "note-3", "note-4"]
    assert not recorder.unsaved


@pytest.mark.parametrize("keep", [True, False])
async def test_a_broken_stream_whose_append_has_landed_is_a_success(keep: bool) -> None:
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    storage.faults.append("broken, landed")
    await recorder.write([_note(1), _note(2)], keep=keep)
    assert told.names == await _written(storage) == ["note-1", "note-2"]
    assert (await reopened(storage)).state == recorder.log.state


async def test_a_broken_stream_whose_append_is_lost_is_written_again() -> None:
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    storage.faults.append("broken, lost")
    with pytest.raises(NotDurable):
        await recorder.write([_note(1)], keep=True)
    await recorder.write((), keep=True)
    assert told.names == await _written(storage) == ["note-1"]


async def test_an_open_outcome_is_settled_before_the_next_append() -> None:
    """A forgotten batch that did land must not be taken for the one that comes next."""
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    storage.faults.append("broken, landed")
    storage.recoveries.append(False)
    with pytest.raises(NotDurable):
        await recorder.write([_note(1)], keep=False)
    assert told.names == []
    await recorder.write([_note(2)], keep=True)
    assert told.names == await _written(storage) == ["note-1", "note-2"]


async def test_a_cancelled_append_is_settled_before_the_next_one(
    autojump_clock: trio.testing.MockClock,
) -> None:
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    storage.slow_s = 10
    with trio.move_on_after(1):
        await recorder.write([_note(1)], keep=True)
    assert recorder.unsaved
    await recorder.write((), keep=True)
    assert told.names == await _written(storage) == ["note-1"]


async def test_a_batch_over_a_line_is_halved_in_order() -> None:
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    await recorder.write([_note(number, "x" * 300_000) for number in range(9)], keep=True)
    names = [f"note-{number}" for number in range(9)]
    assert told.names == await _written(storage) == names


async def test_a_batch_over_a_line_that_was_asked_for_is_all_or_nothing() -> None:
    storage = FlakyLog()
    recorder, told = await _recorder(storage)
    with pytest.raises(NotDurable, match="at most 1048576"):
        await recorder.write([_note(number, "x" * 300_000) for number in range(9)], keep=False)
    assert told.names == await _written(storage) == []
    assert not recorder.unsaved


async def test_one_kept_change_over_a_line_is_a_bug_and_no_endless_wait() -> None:
    recorder, _ = await _recorder(FlakyLog())
    with pytest.raises(Unwritable, match="at most 1048576"):
        await recorder.write([_note(1, "x" * 1_100_000)], keep=True)


@pytest.mark.parametrize("bad", ["\ud800", object()])
async def test_what_json_cannot_hold_is_the_asker_s_mistake(bad: object) -> None:
    storage = FlakyLog()
    recorder, _ = await _recorder(storage)
    waiting = InputInfo(id="i", client_id="c", source=UserInput(content=()), created_at=1)
    change = input_change(SESSION, waiting)
    with pytest.raises(BadRequest, match="cannot be stored as JSON"):
        await recorder.write([Change({**change.entry, "x": bad}, None)], keep=False)
    await recorder.write([_note(1)], keep=False)
    assert await _written(storage) == ["note-1"]


def test_nothing_is_lost_doubled_reordered_or_told_too_early() -> None:
    async def test(random: Random) -> None:
        storage = FlakyLog()
        recorder, told = await _recorder(storage)
        drawn: list[Fault] = [*FAULTS, "", "", ""]
        storage.faults.extend(random.choices(drawn, k=30))
        storage.recoveries.extend(random.choices([True, True, False], k=20))
        kept: list[str] = []
        refused: set[str] = set()
        number = 0
        for _ in range(25):
            size = random.randint(0, 4)
            text = "x" * random.choice((*[1] * 15, 300_000))
            batch = [_note(number + offset, text) for offset in range(size)]
            number += size
            keep = random.random() < 0.6
            names = [_name(change) for change in batch]
            try:
                await recorder.write(batch, keep=keep)
            except NotDurable:
                if not keep:
                    refused |= set(names)
            kept += names
            assert told.names == (await _written(storage))[: len(told.names)]
        storage.heal()
        await recorder.write((), keep=True)
        await recorder.write([_note(number)], keep=True)
        written = await _written(storage)
        assert told.names == written
        assert len(written) == len(set(written))
        assert [name for name in written if name not in refused] == [
            name for name in [*kept, f"note-{number}"] if name not in refused
        ]
        assert (await reopened(storage)).state == recorder.log.state

    run_seeds(test, 150)
