"""Commands in a terminal of a client: a process like any other, for as long as the client is."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.vaala.services.fakes import Connection, FakeTerminals
from tests.vaala.tools.calling import Caller
from tests.vaala.tools.scripted import ScriptedWorkspace
from vaala.services import limits
from vaala.services.base import Offer
from vaala.services.environment import Environment
from vaala.services.registry import Services
from vaala.services.workspace import ServicedWorkspace
from vaala.tools.running_command import SessionCommand
from vaala_executors import Command, Exit, Process
from vaala_protocol.base import Malformed
from vaala_protocol.calls import CommandDetails
from vaala_protocol.errors import Refused
from vaala_protocol.methods.client import TerminalOutputResult
from vaala_protocol.methods.runtime import ClientEnvironment


@dataclass
class Rig:
    terminals: FakeTerminals
    services: Services
    environment: Environment
    inner: ScriptedWorkspace
    workspace: ServicedWorkspace
    connection: Connection
    caller: Caller
    served: list[str]


@pytest.fixture
async def rig(nursery: trio.Nursery) -> AsyncIterator[Rig]:
    services, environment, inner = Services(), Environment(own={}), ScriptedWorkspace()
    terminals = FakeTerminals()
    served: list[str] = []
    workspace = ServicedWorkspace(inner, services, environment, served.append)
    connection = Connection(services, Offer("Zed", terminals=terminals))
    caller = Caller(workspace, nursery)
    yield Rig(terminals, services, environment, inner, workspace, connection, caller, served)
    nursery.cancel_scope.cancel()


LS = Command(argv=("ls", "-l"))


async def collect(process: Process) -> str:
    return b"".join([piece async for piece in process.output()]).decode()


async def test_a_command_from_start_to_end(rig: Rig, autojump_clock: MockClock) -> None:
    async with rig.workspace.start(LS) as process:
        rig.terminals.say("one\n")
        rig.terminals.say("two\n")
        rig.terminals.exits(3, text="three\n")
        assert await collect(process) == "one\ntwo\nthree\n"
        assert await process.wait() == Exit(3, None)
        assert process.pid == 0
    assert rig.terminals.ended == ["t1"], "the client forgets the terminal"
    assert rig.served == ["Zed"]
    assert rig.inner.processes == []


async def test_what_the_client_is_asked_to_run(rig: Rig, autojump_clock: MockClock) -> None:
    overlay = {"PATH": "/venv/bin", "VIRTUAL_ENV": None}
    rig.environment.adopt(ClientEnvironment(directory="/", overlay=overlay))
    env: dict[str, str | None] = {"A": "b", "PAGER": None}
    for command in (
        Command(shell="echo $HOME | wc", env=env),
        Command(argv=("git", "log"), cwd="sub"),
        Command(argv=("git", "log"), cwd="/elsewhere"),
    ):
        async with rig.workspace.start(command):
            rig.terminals.exits()
    shell, *others = rig.terminals.started
    assert os.path.basename(shell.command) in ("bash", "sh")
    assert shell.arguments == ("-c", "echo $HOME | wc")
    assert shell.directory == "/w"
    assert [(one.command, one.arguments) for one in others] == [("git", ("log",))] * 2
    assert [one.directory for one in others] == ["/w/sub", "/elsewhere"]
    assert {**shell.environment, **{"PATH": "/venv/bin", "A": "b"}} == shell.environment
    assert shell.environment["GIT_TERMINAL_PROMPT"] == "0", "nobody sits there to answer"
    assert not {"PAGER", "VIRTUAL_ENV", "TERM"} & set(shell.environment)


async def test_without_an_offer_commands_run_here(rig: Rig, autojump_clock: MockClock) -> None:
    rig.connection.close()
    overlay = {"PATH": "/venv/bin", "TZ": None, "A": "overlay"}
    rig.environment.adopt(ClientEnvironment(directory="/", overlay=overlay))
    async with rig.workspace.start(Command(shell="ls", env={"A": "b"})):
        pass
    env = rig.inner.last.command.env
    assert env == {"PATH": "/venv/bin", "TZ": None, "A": "b"}
    assert rig.served == []


async def test_there_is_no_input(rig: Rig, autojump_clock: MockClock) -> None:
    async with rig.workspace.start(Command(shell="cat", stdin=True)) as process:
        with pytest.raises(BrokenPipeError, match="a terminal of the client Zed takes no input"):
            await process.write(b"x")
        await process.close_stdin()
        await process.resize(80, 24)


async def test_the_end_without_a_reader_of_its_output(rig: Rig, autojump_clock: MockClock) -> None:
    async with rig.workspace.start(LS) as process:
        for _ in range(3):
            rig.terminals.say("x" * 100)
        rig.terminals.exits(0)
        assert await process.wait() == Exit(0, None)
        assert len(await collect(process)) == 300, "what was read ahead is not lost"


async def test_output_that_nobody_takes_is_not_asked_for_without_bound(
    rig: Rig, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    piece = "x" * (limits.TERMINAL_WAITING_BYTES_MAX // 2 + 1)
    async with rig.workspace.start(LS) as process:
        for _ in range(5):
            rig.terminals.say(piece)
        rig.terminals.exits(0)
        nursery.start_soon(process.wait)
        await wait_all_tasks_blocked()
        assert rig.terminals.asked_output == 2
        assert len(await collect(process)) == 5 * len(piece)
        assert await process.wait() == Exit(0, None)


async def test_output_and_end_are_waited_for_by_several(
    rig: Rig, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    ends: list[Exit] = []

    async def wait() -> None:
        ends.append(await process.wait())

    async with rig.workspace.start(LS) as process:
        nursery.start_soon(wait)
        nursery.start_soon(wait)
        await wait_all_tasks_blocked()
        assert rig.terminals.asked_output == 1, "one request at a time"
        rig.terminals.say("a")
        await wait_all_tasks_blocked()
        rig.terminals.exits(1, text="b")
        assert await collect(process) == "ab"
        await wait_all_tasks_blocked()
    assert ends == [Exit(1, None)] * 2


async def test_what_the_client_did_not_keep_is_counted(rig: Rig, autojump_clock: MockClock) -> None:
    async with rig.workspace.start(LS) as process:
        rig.terminals.say("rest\n", dropped_bytes=12345)
        rig.terminals.exits(0, text="\ud800")
        output = await collect(process)
    assert output == "\n(… 12,345 bytes left out by the client Zed …)\nrest\n?"


async def test_a_client_that_never_waits_is_not_asked_in_a_tight_loop(
    rig: Rig, autojump_clock: MockClock
) -> None:
    async with rig.workspace.start(LS) as process:
        for _ in range(10):
            rig.terminals.say("")
        rig.terminals.exits(0)
        began = trio.current_time()
        assert await collect(process) == ""
        assert trio.current_time() - began == pytest.approx(10 * limits.TERMINAL_EMPTY_PAUSE_S)


@pytest.mark.parametrize("signal", ["INT", "TERM", "KILL", "HUP"])
async def test_every_signal_ends_the_command(
    rig: Rig, autojump_clock: MockClock, signal: str, nursery: trio.Nursery
) -> None:
    outputs: list[str] = []

    async def read() -> None:
        outputs.append(await collect(process))

    async with rig.workspace.start(LS) as process:
        rig.terminals.say("words\n")
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        process.send_signal(signal)  # type: ignore[arg-type] # a parameter of pytest
        await wait_all_tasks_blocked()
        assert await process.wait() == Exit(None, 15)
        process.send_signal("KILL")
    assert outputs == ["words\nlast words\n"]
    assert rig.terminals.ended == ["t1"], "once"


async def test_a_signal_while_nobody_waits(rig: Rig, autojump_clock: MockClock) -> None:
    async with rig.workspace.start(LS) as process:
        process.send_signal("TERM")
        assert await process.wait() == Exit(None, 15)
        assert await collect(process) == "last words\n"


async def test_the_end_is_shielded_and_bounded(rig: Rig, autojump_clock: MockClock) -> None:
    rig.terminals.end_manner.silent = True
    began = trio.current_time()
    with trio.CancelScope() as scope:
        async with rig.workspace.start(LS):
            scope.cancel()
            await trio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert rig.terminals.end_manner.asked == ["end"]
    assert trio.current_time() - began == limits.TERMINAL_END_S


async def test_a_command_that_cannot_be_ended(rig: Rig, autojump_clock: MockClock) -> None:
    rig.terminals.end_manner.silent = True
    async with rig.workspace.start(LS) as process:
        assert await process.end() == Exit(None, None), "how it ended is not known"
        assert "no answer within 6 s; the command may still run" in await collect(process)
        assert await process.end() == Exit(None, None)
        assert await process.wait() == Exit(None, None)
    assert rig.terminals.end_manner.asked == ["end"]


async def test_the_rest_of_the_output_is_waited_for_shortly(
    rig: Rig, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    outputs: list[tuple[str, float]] = []

    async def read() -> None:
        outputs.append((await collect(process), trio.current_time()))

    rig.terminals.end_manner.error = Refused("it is gone")
    async with rig.workspace.start(LS) as process:
        nursery.start_soon(read)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        await process.end()
        await trio.sleep(limits.TERMINAL_REST_S * 2)
    ((text, at),) = outputs
    assert "Zed did not end a command: it is gone; the command may still run" in text
    assert at - began <= limits.TERMINAL_REST_S


@pytest.mark.parametrize("text", ["", "more\n"])
async def test_a_client_that_never_comes_to_the_end_of_the_output_is_left(
    rig: Rig, autojump_clock: MockClock, nursery: trio.Nursery, text: str
) -> None:
    async def more(terminal_id: str) -> TerminalOutputResult:
        await trio.sleep(0.1)
        return TerminalOutputResult(text=text)

    rig.terminals.output = more  # type: ignore[method-assign] # one that goes on
    ended_at: list[float] = []

    async def read() -> None:
        await collect(process)
        ended_at.append(trio.current_time())

    async with rig.workspace.start(LS) as process:
        nursery.start_soon(read)
        await trio.sleep(3)
        began = trio.current_time()
        process.send_signal("INT")
        await trio.sleep(limits.TERMINAL_REST_S / 2)
        assert await process.end() == Exit(None, 15), "once more, which gives no more time"
        await trio.sleep(2 * limits.TERMINAL_REST_S)
    assert ended_at == [pytest.approx(began + limits.TERMINAL_REST_S)]


async def test_a_client_that_goes_while_its_command_runs(
    rig: Rig, autojump_clock: MockClock
) -> None:
    async with rig.workspace.start(LS) as process:
        rig.terminals.say("words\n")
        rig.connection.close()
        output = await collect(process)
        assert await process.wait() == Exit(None, None)
        process.send_signal("TERM")
    assert output.startswith("\n(lost: the client Zed ") or output.startswith("words\n")
    assert output.endswith("; the command may still run)\n")
    assert rig.terminals.ended == []


@pytest.mark.parametrize("error", [Malformed("no text"), None])
async def test_output_that_cannot_be_had_loses_the_command_and_ends_it(
    rig: Rig, autojump_clock: MockClock, error: Exception | None
) -> None:
    async with rig.workspace.start(LS) as process:
        if error is None:
            rig.terminals.breaks()
        else:

            async def garbage(terminal_id: str) -> object:
                await trio.lowlevel.checkpoint()
                raise error

            rig.terminals.output = garbage  # type: ignore[method-assign,assignment] # garbage
        output = await collect(process)
        assert await process.wait() == Exit(None, None)
    assert "\n(lost: the client Zed" in output
    assert rig.terminals.end_manner.asked == ["end"], "the client is there, so it ends it"


async def test_a_start_that_fails(rig: Rig, autojump_clock: MockClock) -> None:
    rig.terminals.manner.error = Refused("the person said no")
    said = await rig.caller.failure("exec_command", command="ls")
    assert said == "the client Zed did not run a command in a terminal: the person said no"
    rig.terminals.manner.error, rig.terminals.manner.silent = None, True
    said = await rig.caller.failure("exec_command", command="ls")
    assert "gave no answer within 30 s; whether it was done is not known" in said
    assert rig.inner.processes == [], "it may run at the client, so it is not run again here"


async def test_exec_command_in_a_terminal(
    rig: Rig, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    rig.terminals.say("hello\n")
    rig.terminals.exits(2)
    result = await rig.caller.call("exec_command", command="make")
    assert "hello" in str(result.content)
    assert isinstance(result.details, CommandDetails)
    assert result.details.exit_code == 2
    assert rig.served == ["Zed"]


async def test_a_call_whose_client_goes_ends_at_once(
    rig: Rig, autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    results: list[str] = []

    async def call() -> None:
        results.append(await rig.caller.text("exec_command", command="make"))

    nursery.start_soon(call)
    await wait_all_tasks_blocked()
    began = trio.current_time()
    rig.connection.close()
    await wait_all_tasks_blocked()
    assert trio.current_time() == began
    (text,) = results
    assert "How it ended is not known." in text
    assert "the client Zed went away" in text


async def test_an_interrupted_call_ends_its_terminal(rig: Rig, autojump_clock: MockClock) -> None:
    with trio.move_on_after(3):
        await rig.caller.call("exec_command", command="sleep 100")
    assert rig.terminals.ended == ["t1"]
    assert rig.caller.commands.running == 0


async def test_a_command_whose_time_is_up(rig: Rig, autojump_clock: MockClock) -> None:
    rig.terminals.say("words\n")
    text = await rig.caller.text("exec_command", command="sleep 100", timeout_s=5)
    assert "timed out" in text
    assert "words" in text
    assert "last words" in text


async def test_a_background_command(rig: Rig, autojump_clock: MockClock) -> None:
    result = await rig.caller.call("exec_command", command="serve", background=True)
    assert isinstance(result.details, CommandDetails)
    command_id = result.details.command_id
    assert command_id is not None
    said = await rig.caller.failure("write_stdin", command_id=command_id, text="x\n")
    assert "reads no input" in said
    running = rig.caller.commands.get(command_id)
    assert isinstance(running, SessionCommand)
    text = await rig.caller.text("write_stdin", command_id=command_id, text="\x03")
    assert "last words" in text
    await rig.caller.told.news.wait()
    assert rig.caller.told.ended[0].signal == 15
