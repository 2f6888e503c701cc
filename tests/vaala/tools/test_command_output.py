"""Output of commands: bounded, exact, live, saved; with a scripted process and with real ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.tools.calling import Caller
from tests.vaala.tools.scripted import ScriptedProcess, ScriptedWorkspace
from vaala.tools import limits
from vaala_protocol.calls import CommandDetails
from vaala_protocol.content import text_of


class Scripted:
    def __init__(self, caller: Caller, workspace: ScriptedWorkspace, nursery: trio.Nursery) -> None:
        self.caller = caller
        self.workspace = workspace
        self._nursery = nursery
        self.text = ""
        self.details: CommandDetails | None = None
        self._done = trio.Event()

    async def start(self) -> ScriptedProcess:
        async def run() -> None:
            result = await self.caller.call("exec_command", command="x")
            self.text = text_of(result.content)
            assert isinstance(result.details, CommandDetails)
            self.details = result.details
            self._done.set()

        self._nursery.start_soon(run)
        await wait_all_tasks_blocked()
        return self.workspace.last

    async def finish(self) -> CommandDetails:
        self.workspace.last.exits(0)
        await self._done.wait()
        assert self.details is not None
        return self.details


@pytest.fixture
def scripted(nursery: trio.Nursery) -> Scripted:
    workspace = ScriptedWorkspace()
    return Scripted(Caller(workspace, nursery), workspace, nursery)


async def test_huge_output_is_cut_with_exact_numbers_and_saved(scripted: Scripted) -> None:  # D4-3
    process = await scripted.start()
    data = b"".join(b"line %07d\n" % n for n in range(50_000)) + b"2 failed\n"
    for at in range(0, len(data), 60_000):
        process.say(data[at : at + 60_000])
    details = await scripted.finish()
    note, _, text = scripted.text.partition("\n")
    assert text.startswith("line 0000000\n")
    assert text.endswith("line 0049999\n2 failed\n")
    found = re.search(r"\n\(… ([\d,]+) bytes in ([\d,]+) lines left out …\)\n", text)
    assert found is not None
    omitted, lines = (int(part.replace(",", "")) for part in found.groups())
    shown = text[: found.start() + 1] + text[found.end() :]
    assert omitted + len(shown) == len(data)
    assert lines == data.count(b"\n") - shown.count("\n")
    assert len(text.encode()) <= limits.COMMAND_OUTPUT_BYTES_MAX
    # D4-4: how to read the rest
    assert note == (
        f"The whole output, {len(data):,} bytes, is saved: read_file blob:{details.output_blob}"
    )
    assert scripted.caller.blobs.kept == {details.output_blob: data}
    assert (details.output_bytes, details.omitted_bytes) == (len(data), omitted)
    page = await scripted.caller.text(
        "read_file", path=f"blob:{details.output_blob}", offset=30_001, limit=1
    )
    assert page.endswith("line 0030000")


async def test_small_output_makes_no_blob(scripted: Scripted) -> None:
    process = await scripted.start()
    process.say(b"x" * limits.COMMAND_OUTPUT_BYTES_MAX)
    details = await scripted.finish()
    assert details.output_blob is None
    assert scripted.caller.blobs.kept == {}


async def test_output_that_cannot_be_saved(scripted: Scripted) -> None:  # D4-5
    scripted.caller.blobs.fails = True
    process = await scripted.start()
    for _ in range(50):
        process.say(b"y" * 60_000 + b"\n")
    details = await scripted.finish()
    assert details.output_blob is None
    assert "could not be saved: no space left on the device" in scripted.text
    assert "left out" in scripted.text


async def test_what_is_saved_is_bounded(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMMAND_SAVED_BYTES_MAX", 100_000)
    process = await scripted.start()
    for _ in range(5):
        process.say(b"y" * 50_000)
    details = await scripted.finish()
    assert "The whole output" not in scripted.text
    assert len(scripted.caller.blobs.kept[details.output_blob or ""]) == 100_000
    assert "Only the first 100,000 bytes of the output were saved." in scripted.text


async def test_live_output_is_coalesced(scripted: Scripted, autojump_clock: MockClock) -> None:
    process = await scripted.start()
    for _ in range(200):
        process.say(b"tick\n")
        await trio.sleep(0.01)
    await scripted.finish()
    told = scripted.caller.told
    assert "".join(text for _, _, text in told.output) == "tick\n" * 200
    assert len(told.output) <= 2.0 / limits.LIVE_INTERVAL_S + 2
    gaps = [
        after - before for before, after in zip(told.output_at, told.output_at[1:], strict=False)
    ]
    assert min(gaps[:-1]) >= limits.LIVE_INTERVAL_S - 1e-6
    for _, index, text in told.output:
        assert index % 5 == 0
        assert text
    indexes = [index for _, index, _ in told.output]
    assert indexes == sorted(indexes)
    assert indexes[0] == 0


async def test_live_output_that_comes_too_fast_is_skipped(
    scripted: Scripted, autojump_clock: MockClock
) -> None:
    process = await scripted.start()
    process.say(b"first\n")
    await wait_all_tasks_blocked()
    for _ in range(100):
        process.say(b"z" * 50_000)
    await scripted.finish()
    told = scripted.caller.told.output
    assert told[0][1:] == (0, "first\n")
    total = 6 + 100 * 50_000
    _, index, text = told[-1]
    assert index == total - limits.LIVE_BYTES_MAX
    skipped = total - 6 - limits.LIVE_BYTES_MAX
    assert text == f"\n({skipped:,} bytes skipped)\n" + "z" * limits.LIVE_BYTES_MAX


async def test_live_output_is_clean_across_pieces(
    scripted: Scripted, autojump_clock: MockClock
) -> None:  # D5-2
    process = await scripted.start()
    for piece in (b"\x1b]0;pw", b"n\x07\x1b[2", b"Jh\xc3", b"\xa4i\n"):
        process.say(piece)
        await trio.sleep(1)
    await scripted.finish()
    assert "".join(text for _, _, text in scripted.caller.told.output) == "häi\n"
    assert scripted.text == "häi\n"


async def test_the_end_of_a_background_command_tells_bounded_output(
    scripted: Scripted, autojump_clock: MockClock
) -> None:  # D7-4
    scripted.caller.foreground_s = 1
    process = await scripted.start()
    await trio.sleep(2)
    process.say(b"".join(b"row %06d\n" % n for n in range(10_000)))
    process.exits(0)
    await scripted.caller.told.news.wait()
    (ended,) = scripted.caller.told.ended
    assert len(ended.output.encode()) <= limits.COMMAND_END_BYTES_MAX
    assert ended.output.startswith("row 000000\n")
    assert ended.output.endswith("row 009999\n")
    assert re.search(r"bytes in [\d,]+ lines left out", ended.output)
    assert all(re.fullmatch(r"row \d{6}|\(….*…\)|", line) for line in ended.output.split("\n"))


async def test_real_commands(caller: Caller, directory: Path) -> None:
    (directory / "sub").mkdir()
    assert await caller.text("exec_command", command="pwd; echo err >&2; exit 4", cwd="sub") == (
        f"Exit code 4.\n{directory}/sub\nerr\n"
    )


@pytest.mark.parametrize("command", ["cat", "python3", "read x; true", "cat | cat"])  # D1-1
async def test_a_real_command_that_reads_input_is_at_its_end(caller: Caller, command: str) -> None:
    with trio.fail_after(20):
        assert await caller.text("exec_command", command=command) == "No output."


async def test_a_real_grandchild_holds_nothing_up(caller: Caller) -> None:  # D2-1
    with trio.fail_after(15):
        assert await caller.text("exec_command", command="sleep 30 & echo done") == "done\n"


async def test_a_real_conversation_with_a_program(caller: Caller) -> None:
    result = await caller.call("exec_command", command="exec python3 -uiq", background=True)
    assert isinstance(result.details, CommandDetails)
    command_id = result.details.command_id
    with trio.fail_after(20):
        text = await caller.text("write_stdin", command_id=command_id, text="print(6 * 7)\n")
        assert "42" in text
        await caller.call("write_stdin", command_id=command_id, text="\x04", wait_s=20)
        await caller.told.news.wait()
    assert [ended.exit_code for ended in caller.told.ended] == [0]


async def test_a_real_interrupt(caller: Caller) -> None:
    result = await caller.call("exec_command", command="exec sleep 1000", background=True)
    assert isinstance(result.details, CommandDetails)
    with trio.fail_after(20):
        text = await caller.text(
            "write_stdin", command_id=result.details.command_id, text="\x03", wait_s=20
        )
    assert text == "Ended by SIGINT. No output."


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("printf 'a\\0b'", "a␀b"),
        (r"printf '\033]0;pwn\007\033[2J\033]52;c;ZWNobw==\007hi'", "hi"),
        ("head -c 4096 /dev/urandom", None),
        (r"printf '\xff\xfe'", "\ufffd\ufffd"),
    ],
)
async def test_real_output_is_clean(
    caller: Caller, command: str, shown: str | None
) -> None:  # D5-1
    text = await caller.text("exec_command", command=command)
    assert shown is None or text == shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)


async def test_a_real_flood_is_ended_in_time(caller: Caller) -> None:  # D4-2
    with trio.fail_after(20):
        text = await caller.text("exec_command", command="yes", timeout_s=1)
    assert "It timed out and was ended." in text
    assert "left out" in text


async def test_a_directory_that_is_gone(caller: Caller, directory: Path) -> None:  # D6-1, D6-3
    assert "none" in await caller.failure("exec_command", command="echo hi", cwd="none")
    (directory / "f").touch()
    assert "f" in await caller.failure("exec_command", command="echo hi", cwd="f")
    assert await caller.text("exec_command", command="echo hi") == "hi\n"


@pytest.mark.parametrize("command", ["echo \x1b[2J", "echo a\x07", "ls \u202e", "a\x00b"])
async def test_a_command_that_hides_a_part_of_itself(caller: Caller, command: str) -> None:
    assert "control characters" in await caller.failure("exec_command", command=command)


async def test_what_a_rule_names(caller: Caller, directory: Path) -> None:
    (directory / "sub").mkdir()
    call = await caller.prepare("exec_command", command="git status")
    assert (call.access.kind, call.access.subject) == ("execute", "git status")
    assert not call.access.outside
    call = await caller.prepare("exec_command", command="git status", cwd="sub")
    assert call.access.subject == "cd sub && git status"
    (directory / "x; cd sub").mkdir()
    call = await caller.prepare("exec_command", command="git status", cwd="x; cd sub")
    assert call.access.subject == "cd 'x; cd sub' && git status"
    call = await caller.prepare("exec_command", command="git status", cwd="/")
    assert call.access.outside
