"""The commands of a session under a fake clock: lifetimes, hand-over, output, limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.tools.calling import NOW_MS, Caller
from tests.vaala.tools.scripted import ScriptedProcess, ScriptedWorkspace
from vaala.tools import limits
from vaala.tools.base import ToolFailure
from vaala_executors import ExecutorLost, Exit
from vaala_protocol.calls import CommandDetails
from vaala_protocol.content import text_of
from vaala_protocol.state import CommandEnded, CommandInfo


@pytest.fixture
def scripted() -> ScriptedWorkspace:
    return ScriptedWorkspace()


@pytest.fixture
def caller(scripted: ScriptedWorkspace, nursery: trio.Nursery) -> Caller:
    return Caller(scripted, nursery)


class Call:
    """A call that runs beside the test."""

    def __init__(self) -> None:
        self.text = ""
        self.details: CommandDetails | None = None
        self.done = trio.Event()
        self.scope = trio.CancelScope()


async def begin(
    caller: Caller, nursery: trio.Nursery, name: str = "exec_command", **arguments: Any
) -> Call:
    """Start a call and wait until nothing moves."""
    call = Call()

    async def run() -> None:
        with call.scope:
            try:
                result = await caller.call(name, **arguments)
            except ToolFailure as error:
                call.text = f"FAILED {error}"
            else:
                call.text = text_of(result.content)
                if isinstance(result.details, CommandDetails):
                    call.details = result.details
            finally:
                call.done.set()

    nursery.start_soon(run)
    await wait_all_tasks_blocked()
    return call


async def start_background(
    caller: Caller, scripted: ScriptedWorkspace, said: bytes = b"up\n", **arguments: Any
) -> tuple[str, ScriptedProcess]:
    """Start a background command and return its id."""
    async with trio.open_nursery() as nursery:
        call = await begin(caller, nursery, command="serve", background=True, **arguments)
        scripted.last.say(said)
    assert call.details is not None
    assert call.details.command_id is not None
    return call.details.command_id, scripted.last


async def test_a_command_that_ends(
    caller: Caller, scripted: ScriptedWorkspace, nursery: trio.Nursery
) -> None:
    call = await begin(caller, nursery, command="make", cwd="src")
    assert scripted.last.command.shell == "make"
    assert (scripted.last.command.cwd, scripted.last.command.stdin) == ("/w/src", False)
    scripted.last.say(b"hello \xc3")
    scripted.last.say(b"\xa4\n")
    scripted.last.exits(3)
    await call.done.wait()
    assert call.text == "Exit code 3.\nhello ä\n"
    assert call.details == CommandDetails(
        command="make",
        cwd="src",
        executor="scripted",
        command_id=call.details.command_id if call.details else None,
        exit_code=3,
        output_bytes=9,
        omitted_bytes=0,
    )
    # It ended in the foreground, so its call tells it, and nobody else.
    assert (caller.told.backgrounded, caller.told.ended) == ([], [])
    assert scripted.live == 0


@pytest.mark.parametrize(
    ("code", "signal", "said", "text"),
    [
        (0, None, b"", "No output."),
        (0, None, b"x", "x"),
        (None, 9, b"", "Ended by SIGKILL. No output."),
        (None, 200, b"", "Ended by signal 200. No output."),
    ],
)
async def test_how_it_ended(
    caller: Caller,
    scripted: ScriptedWorkspace,
    nursery: trio.Nursery,
    code: int | None,
    signal: int | None,
    said: bytes,
    text: str,
) -> None:
    call = await begin(caller, nursery, command="x")
    if said:
        scripted.last.say(said)
    scripted.last.exits(code, signal)
    await call.done.wait()
    assert call.text == text


async def test_a_long_command_goes_on_in_the_background(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:  # D7-1
    call = await begin(caller, nursery, command="long")
    scripted.last.say(b"half\n")
    started = trio.current_time()
    await call.done.wait()
    assert trio.current_time() - started == pytest.approx(120, abs=1)
    assert call.details is not None
    command_id = call.details.command_id or ""
    assert "It has taken 120 s." in call.text
    assert f"running as command {command_id}" in call.text
    assert call.text.endswith("half\n")
    assert call.details.background
    assert caller.told.backgrounded == [
        CommandInfo(
            id=command_id,
            session_id="session",
            tool_call_id="call",
            command="long",
            cwd=".",
            started_at=NOW_MS,
            executor="scripted",
            output_bytes=5,
        )
    ]
    assert caller.commands.infos() == tuple(caller.told.backgrounded)
    scripted.last.say(b"ok\n")
    scripted.last.exits(0)
    await caller.told.news.wait()
    await trio.sleep(100)
    assert caller.told.ended == [
        CommandEnded(
            command_id=command_id, tool_call_id="call", command="long", exit_code=0, output="ok\n"
        )
    ]
    assert caller.commands.infos() == ()


async def test_the_time_limit_ends_the_tree(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:  # D3-4
    call = await begin(caller, nursery, command="loop", timeout_s=2)
    scripted.last.say(b"so far\n")
    with trio.fail_after(3):
        await call.done.wait()
    assert "timed out" in call.text
    assert "The limit was 2 s." in call.text
    assert call.text.endswith("so far\n")
    assert call.details is not None
    assert call.details.timed_out
    assert scripted.last.ended_by_us


async def test_the_time_limit_holds_in_the_background(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    _, process = await start_background(caller, scripted, timeout_s=500)
    await trio.sleep(490)
    assert caller.told.ended == []
    await trio.sleep(20)
    assert process.ended_by_us
    assert [ended.signal for ended in caller.told.ended] == [15]


@pytest.mark.parametrize("arguments", [{}, {"background": True}])
async def test_a_cancelled_call_ends_its_command(
    caller: Caller,
    scripted: ScriptedWorkspace,
    autojump_clock: MockClock,
    nursery: trio.Nursery,
    arguments: dict[str, Any],
) -> None:  # D3-2
    call = await begin(caller, nursery, command="sleep 100", **arguments)
    call.scope.cancel()
    with trio.fail_after(1):
        await call.done.wait()
    assert scripted.last.ended_by_us
    assert (scripted.live, caller.commands.running) == (0, 0)
    assert caller.told.ended == []


async def test_a_call_cancelled_at_any_moment_leaves_nothing(
    scripted: ScriptedWorkspace, autojump_clock: MockClock
) -> None:
    for steps in range(12):
        async with trio.open_nursery() as nursery:
            caller = Caller(scripted, nursery)

            async def run(scope: trio.CancelScope, caller: Caller = caller) -> None:
                with scope:
                    await caller.call("exec_command", command="sleep 100")

            scope = trio.CancelScope()
            nursery.start_soon(run, scope)
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            scope.cancel()
        assert (scripted.live, caller.commands.running) == (0, 0)


async def test_exit_and_cancel_at_once(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:  # D3-5
    call = await begin(caller, nursery, command="x")
    scripted.last.exits(7)
    call.scope.cancel()
    await call.done.wait()
    await wait_all_tasks_blocked()
    assert not scripted.last.ended_by_us
    assert caller.told.ended == []
    assert caller.commands.running == 0


async def test_exit_and_hand_over_at_once(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:  # D7-1
    """Whichever comes first, the end is told once: by the call, or to the session."""
    for early in range(12):
        caller.told.ended.clear()
        call = await begin(caller, nursery, command="x")
        await trio.sleep_until(trio.current_time() + 120 - 0.05 * (early % 2))
        for _ in range(early):
            await trio.lowlevel.checkpoint()
        scripted.last.exits(5)
        await call.done.wait()
        await wait_all_tasks_blocked()
        assert len(caller.told.ended) + call.text.count("Exit code 5.") == 1


async def test_the_nursery_takes_all_commands_with_it(
    scripted: ScriptedWorkspace, autojump_clock: MockClock
) -> None:  # D3-3
    async with trio.open_nursery() as nursery:
        caller = Caller(scripted, nursery)
        for _ in range(3):
            await start_background(caller, scripted)
        waiting = await begin(caller, nursery, command="front")
        assert scripted.live == 4
        nursery.cancel_scope.cancel()
    assert waiting.done.is_set()
    assert scripted.live == 0
    assert caller.told.ended == []


async def test_polling_gives_each_byte_once(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:  # D7-2
    command_id, process = await start_background(caller, scripted)
    process.say("gr\xfc".encode()[:-1])
    first = await caller.text("write_stdin", command_id=command_id)
    process.say("\xfc".encode()[1:] + b"n\n\x1b[3")
    second = await caller.text("write_stdin", command_id=command_id)
    process.say(b"1mred\x1b[0m\n")
    process.exits(0)
    third = await caller.text("write_stdin", command_id=command_id)
    fourth = await caller.text("write_stdin", command_id=command_id)
    assert first == f"It is running as command {command_id}.\ngr"
    assert second == f"It is running as command {command_id}.\nün\n"
    assert third == "red\n"
    assert fourth == "No new output."


async def test_a_poll_waits_for_output_and_no_longer_than_asked(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    command_id, process = await start_background(caller, scripted)
    started = trio.current_time()
    text = await caller.text("write_stdin", command_id=command_id, wait_s=30)
    assert trio.current_time() - started == pytest.approx(30)
    assert text.endswith("No new output.")
    call = await begin(caller, nursery, "write_stdin", command_id=command_id, wait_s=30)
    await trio.sleep(10)
    process.say(b"one\n")
    await trio.sleep(limits.COMMAND_SETTLE_S / 2)
    process.say(b"two\n")
    with trio.fail_after(1):
        await call.done.wait()
    assert call.text.endswith("one\ntwo\n")


async def test_input_for_a_background_command(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock
) -> None:
    command_id, process = await start_background(caller, scripted)
    assert process.command.stdin
    await caller.text("write_stdin", command_id=command_id, text="print(1)\n\x03y\n\x04")
    assert process.written == [b"print(1)\n", b"y\n"]
    assert process.signals == ["INT"]
    assert not process.stdin_open
    text = await caller.failure("write_stdin", command_id=command_id, text="more")
    assert "reads no input any more" in text


async def test_input_that_nobody_reads(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    command_id, process = await start_background(caller, scripted)
    process.reads_stdin = False
    assert "has not read its input for 10 s" in await caller.failure(
        "write_stdin", command_id=command_id, text="x"
    )
    caller.foreground_s = 1
    call = await begin(caller, nursery, command="front")
    await call.done.wait()
    assert call.details is not None
    front = call.details.command_id
    assert "has no input" in await caller.failure("write_stdin", command_id=front, text="x")
    await caller.call("write_stdin", command_id=front, text="\x03")
    assert scripted.last.signals == ["INT"]
    scripted.last.exits(1)
    await caller.told.news.wait()
    assert "has ended. Exit code 1." in await caller.failure(
        "write_stdin", command_id=front, text="x"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [("", "none"), ("\x03", "none"), ("y\n", "execute"), ("\x03rm x\n", "execute")],
)
async def test_writing_is_allowed_by_a_person_and_looking_is_free(
    caller: Caller, text: str, kind: str
) -> None:
    call = await caller.prepare("write_stdin", command_id="c1", text=text)
    assert call.access.kind == kind
    if kind == "execute":
        assert call.access.subject == f"c1: {text}"
        assert json.dumps(text) in call.title


async def test_an_unknown_command_is_told_with_those_there_are(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock
) -> None:
    command_id, _ = await start_background(caller, scripted)
    text = await caller.failure("write_stdin", command_id="c0")
    assert "no command 'c0'" in text
    assert f"Running: {command_id} (serve). Ended: none" in text


async def test_the_number_of_commands_is_bounded(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock
) -> None:
    first, process = await start_background(caller, scripted)
    for _ in range(limits.COMMANDS_RUNNING_MAX - 1):
        await start_background(caller, scripted)
    text = await caller.failure("exec_command", command="one more")
    assert "16 commands" in text
    assert first in text
    process.exits(0)
    await caller.told.news.wait()
    await start_background(caller, scripted)


async def test_ended_commands_are_remembered_up_to_a_bound(
    caller: Caller, scripted: ScriptedWorkspace, autojump_clock: MockClock
) -> None:
    ids: list[str] = []
    for _ in range(limits.COMMANDS_REMEMBERED_MAX + 1):
        command_id, process = await start_background(caller, scripted)
        process.exits(0)
        await wait_all_tasks_blocked()
        ids.append(command_id)
    assert len(set(ids)) == len(ids)
    assert "no command" in await caller.failure("write_stdin", command_id=ids[0])
    assert await caller.text("write_stdin", command_id=ids[1]) == "No new output."
    assert len(caller.told.ended) == len(ids)


async def test_what_cannot_be_started(caller: Caller, scripted: ScriptedWorkspace) -> None:  # D6-1
    assert await caller.failure("exec_command", command="missing") == (
        "working directory '/w' does not exist"
    )
    assert caller.commands.running == 0


async def test_a_command_that_is_lost_is_told_and_contained(
    caller: Caller,
    scripted: ScriptedWorkspace,
    autojump_clock: MockClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    command_id, process = await start_background(caller, scripted)
    process.breaks = ExecutorLost("the machine is gone")
    process.say(b"x")
    await caller.told.news.wait()
    (ended,) = caller.told.ended
    assert ended.lost
    assert command_id in caplog.text
    assert caller.commands.get(command_id).exit == Exit(None, 9)
    await start_background(caller, scripted)  # the session lives on
