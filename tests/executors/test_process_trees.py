"""The whole tree of a command ends: on leaving, cancel, error, and kill -9 of the runtime."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from tests.executors.running import alive, first_line, gone, run
from vaala_executors import Command, Executor, Exit, StartFailed, Workspace
from vaala_executors.limits import END_SECONDS
from vaala_executors.local import LocalExecutor

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")

# Each leaves processes behind and prints their pids on one line.
ESCAPES = {
    "pipeline": "sleep 300 | cat & echo $! $(jobs -p)",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 & echo $!",
    "session": """{ setsid sh -c 'echo $$; exec sleep 300 >/dev/null' & } | {
        read -r pid; echo $pid; }""",
    "orphan": "(setsid sleep 300 >/dev/null 2>&1 & echo $!)",
    "nameless": "(env -i setsid sleep 300 >/dev/null 2>&1 & echo $!)",
    "double fork": """python3 -c '
import os, sys
if os.fork(): os.wait(); sys.exit()
os.setsid()
pid = os.fork()
if pid: print(pid, flush=True); os._exit(0)
os.execve("/bin/sleep", ["sleep", "300"], {})'""",
    "stopped": "sleep 300 & kill -STOP $!; echo $!",
    "headless": """python3 -c '
import ctypes, os, threading, time
threading.Thread(target=time.sleep, args=(300,)).start()
print(os.getpid(), flush=True)
ctypes.CDLL(None).pthread_exit(None)' &
        until grep -q "^State:.Z" /proc/$!/status; do sleep 0.01; done""",
    "deaf": "(trap '' TERM HUP INT; exec sleep 300) & echo $!",
}


def pids(line: str) -> list[int]:
    found = [int(word) for word in line.split()]
    assert found
    return found


def exists(pid: int) -> bool:
    """Whether there is a process or a zombie."""
    return Path(f"/proc/{pid}").exists()


def children() -> list[str]:
    """Return our own children, zombies too."""
    found: list[str] = []
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has ended
            found += path.read_text().split()
    return found


@pytest.mark.parametrize("shell", ESCAPES.values(), ids=ESCAPES)
async def test_leaving_ends_what_the_command_left(workspace: Workspace, shell: str) -> None:
    async with workspace.start(Command(shell=shell)) as process:
        left = pids(await first_line(process))
        assert await process.wait() == Exit(0, None)
        assert any(map(alive, left))
    assert not any(map(alive, left))


@pytest.mark.parametrize("shell", ESCAPES.values(), ids=ESCAPES)
async def test_cancel_ends_the_tree(workspace: Workspace, shell: str) -> None:  # D3-2
    left: list[int] = []
    with trio.CancelScope() as scope:
        async with workspace.start(Command(shell=f"{shell}\ncat", stdin=True)) as process:
            left = [process.pid, *pids(await first_line(process))]
            scope.cancel()
            await process.wait()
    assert scope.cancelled_caught
    assert not any(map(alive, left))


async def test_a_command_deaf_to_term_is_killed_after_the_grace(workspace: Workspace) -> None:
    shell = """trap "" TERM; echo $$; while :; do sleep 1; done"""  # D3-1
    begun = trio.current_time()
    async with workspace.start(Command(shell=shell)) as process:
        left = pids(await first_line(process))
    assert await process.end() == Exit(None, signal.SIGKILL)
    assert 1.9 < trio.current_time() - begun < 8
    assert not any(map(alive, left))


async def test_an_error_in_the_body_ends_the_tree(workspace: Workspace) -> None:
    left: list[int] = []

    async def fail() -> None:
        async with workspace.start(Command(shell="sleep 300 & echo $!; cat")) as process:
            left.extend(pids(await first_line(process)))
            raise KeyError

    with pytest.raises(KeyError):
        await fail()
    assert left
    assert not any(map(alive, left))


def running(*argv: str) -> list[int]:
    """Return the pids of the processes with these arguments."""
    wanted = b"".join(os.fsencode(word) + b"\0" for word in argv)
    found: list[int] = []
    for name in os.listdir("/proc"):
        try:
            if name.isdecimal() and Path(f"/proc/{name}/cmdline").read_bytes() == wanted:
                found.append(int(name))
        except OSError:
            continue  # it has ended
    return found


async def test_cancel_at_any_moment_of_the_start_leaves_nothing(workspace: Workspace) -> None:
    started = moment = 0
    sleep = ("sleep", f"300.{os.getpid()}")  # no other run of this test has the like
    while started < 10:
        with trio.move_on_after(moment**2 / 2000):
            async with workspace.start(Command(argv=sleep)) as process:
                started += 1
                await process.wait()
        assert running(*sleep) == []
        moment += 1


async def test_no_descriptors_left(workspace: Workspace) -> None:
    await run(workspace, "true")
    sleep = ("sleep", f"0.000{os.getpid()}")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir("/proc/self/fd")}
    free = [number for number in range(1000) if number not in used]
    reasons: list[str] = []
    for spare in range(12):
        resource.setrlimit(resource.RLIMIT_NOFILE, (free[spare], before[1]))
        try:
            await run(workspace, f"exec {' '.join(sleep)}", pty=spare % 2 == 0)
        except StartFailed as error:
            reasons.append(str(error))
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert len(os.listdir("/proc/self/fd")) == len(used)
    assert 0 < len(reasons) < 12
    assert all("Too many open files" in reason for reason in reasons)
    assert running(*sleep) == []


async def test_other_commands_are_left_alone(workspace: Workspace) -> None:
    daemon = "(setsid sleep 300 >/dev/null 2>&1 & echo $!); cat"
    async with workspace.start(Command(shell=daemon, stdin=True)) as other:
        left = pids(await first_line(other))
        for shell in ESCAPES.values():
            await run(workspace, shell)
        assert all(map(alive, left))
        assert alive(other.pid)
    assert not any(map(alive, left))


async def test_closing_ends_background_commands_and_leaves_no_zombie() -> None:  # D3-3
    left: list[int] = []

    async def background(workspace: Workspace, started: trio.Event) -> None:
        async with workspace.start(Command(shell="sleep 300 & echo $!; wait")) as process:
            left.extend([process.pid, *pids(await first_line(process))])
            started.set()
            await process.wait()

    async with LocalExecutor() as executor, executor.open_workspace("/") as workspace:
        async with trio.open_nursery() as nursery:
            for _ in range(3):
                started = trio.Event()
                nursery.start_soon(background, workspace, started)
                await started.wait()
            assert all(map(alive, left))
            nursery.cancel_scope.cancel()
        assert not any(map(exists, left))
        assert len(children()) == 1, "the supervisor"
    assert children() == []


SLOW_LOOKS = """
import sys, time
sys.path.append(sys.argv[1])
from supervisor import loop, tree
table, children = tree.table, tree.children
tree.table = lambda: (time.sleep(0.4), table())[1]
tree.children = lambda: (children(), time.sleep(0.2))[0]
loop.main()
"""
ENDS_LATER = """python3 -c '
import os, signal, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(0.45), os._exit(0)))
print(os.getpid(), flush=True)
time.sleep(300)' & wait"""


async def test_who_dies_while_the_supervisor_looks_is_no_zombie_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # D3-3
    monkeypatch.setattr("vaala_executors.local.spawner.BOOTSTRAP", SLOW_LOOKS)
    async with LocalExecutor() as executor, executor.open_workspace("/") as workspace:
        async with workspace.start(Command(shell=ENDS_LATER)) as process:
            left = [process.pid, *pids(await first_line(process))]
        assert not any(map(exists, left))


RUNTIME = """
import trio, sys, os
from vaala_executors import Command
from vaala_executors.local import LocalExecutor

async def one(workspace, shell, task_status):
    async with workspace.start(Command(shell=shell)) as process:
        print(process.pid, (await anext(process.output())).decode().strip(), flush=True)
        task_status.started()
        await trio.sleep_forever()

async def main():
    async with LocalExecutor() as executor, executor.open_workspace("/") as workspace:
        async with trio.open_nursery() as nursery:
            for shell in sys.argv[1:]:
                await nursery.start(one, workspace, shell)
            print("supervisor", executor._machine.starter._spawner._supervisor.pid, flush=True)
            await trio.sleep_forever()

trio.run(main)
"""


@pytest.fixture
async def runtime() -> AsyncIterator[tuple[trio.Process, list[int], int]]:
    """A runtime in a process of its own, its commands' pids, its supervisor's."""
    command = [sys.executable, "-c", RUNTIME, *ESCAPES.values()]
    process = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        text = ""
        with trio.fail_after(30):
            while "supervisor" not in text or not text.endswith("\n"):
                piece = await process.stdout.receive_some()
                assert piece, "the runtime has ended"
                text += piece.decode()
        *lines, last = text.splitlines()
        yield process, [pid for line in lines for pid in pids(line)], int(last.split()[1])
    finally:
        process.kill()
        with trio.CancelScope(shield=True):
            await process.wait()
            assert process.stdout is not None
            await process.stdout.aclose()


async def test_kill_9_of_the_runtime_leaves_nothing(
    runtime: tuple[trio.Process, list[int], int],
) -> None:
    process, left, supervisor = runtime
    assert all(map(alive, [supervisor, process.pid]))
    process.kill()
    await gone(supervisor)
    assert not any(map(alive, left))


async def test_signals_of_a_terminal_do_not_reach_the_supervisor(
    runtime: tuple[trio.Process, list[int], int],
) -> None:
    process, left, supervisor = runtime
    assert os.getsid(supervisor) == supervisor
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE):
        os.kill(supervisor, number)
    process.kill()
    await gone(supervisor)
    assert not any(map(alive, left))


async def test_left_over_of_a_runtime_whose_supervisor_was_killed_too(
    runtime: tuple[trio.Process, list[int], int], executor: Executor
) -> None:
    process, left, supervisor = runtime
    # Others that run on this machine may leave something at any time.
    assert not set(left) & {pid async for pid in executor.left_over()}, "its runtime lives"
    process.send_signal(signal.SIGSTOP)
    os.kill(supervisor, signal.SIGKILL)
    process.kill()
    await process.wait()
    before = [pid for pid in left if alive(pid)]
    ended = [pid async for pid in executor.left_over()]
    assert ended
    assert set(ended) & set(before)
    # An empty environment bears no mark, and that of a dead first thread cannot be read: for those
    # only the supervisor could have cared.
    unmarked = [pid for pid in left if alive(pid)]
    for pid in unmarked:
        os.kill(pid, signal.SIGKILL)
    assert len(unmarked) <= 3


async def test_a_killed_supervisor_is_noticed_and_replaced() -> None:
    async with LocalExecutor() as executor, executor.open_workspace("/") as workspace:
        async with workspace.start(Command(shell="echo $PPID; sleep 300 & echo $!; cat; wait",
                                           stdin=True)) as process:  # fmt: skip
            output = process.output()
            text = b""
            while text.count(b"\n") < 2:
                text += await anext(output)
            supervisor, sleeper = pids(text.decode())
            os.kill(supervisor, signal.SIGKILL)
            assert await process.wait() == Exit(None, signal.SIGKILL)
        assert not alive(process.pid)
        assert not alive(sleeper)
        assert (await run(workspace, "echo again"))[1] == "again\n"


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="needs Linux")
async def test_a_supervisor_without_free_descriptors_refuses_and_lives() -> None:
    echo = Command(shell="echo $PPID; cat", stdin=True)
    async with (
        LocalExecutor() as executor,
        executor.open_workspace("/") as workspace,
        workspace.start(echo) as process,
    ):
        output = process.output()
        [supervisor] = pids((await anext(output)).decode())
        before = resource.prlimit(supervisor, resource.RLIMIT_NOFILE)
        used = len(os.listdir(f"/proc/{supervisor}/fd"))
        refusals: list[str] = []
        for free in range(7):
            resource.prlimit(supervisor, resource.RLIMIT_NOFILE, (used + free, before[1]))
            try:
                # A shell of its own would be short of descriptors too.
                async with workspace.start(Command(argv=("/bin/true",))) as small:
                    await small.wait()
            except StartFailed as error:
                refusals.append(str(error))
        assert 2 < len(refusals) < 7
        assert all("no descriptor left" in text for text in refusals[:2])
        assert "'/bin/true' cannot be started: Too many open files" in refusals
        resource.prlimit(supervisor, resource.RLIMIT_NOFILE, before)
        await process.write(b"still here\n")
        assert await anext(output) == b"still here\n"
        [same] = pids((await run(workspace, "echo $PPID"))[1])
        assert same == supervisor


async def test_a_start_without_an_answer_ends_with_a_cancel(mock_clock: MockClock) -> None:
    async def start(workspace: Workspace) -> None:
        with given_up:
            async with workspace.start(Command(argv=("true",))):
                raise AssertionError("it cannot have started")

    given_up = trio.CancelScope()

    echo = Command(shell="echo $PPID; cat", stdin=True)
    async with (
        LocalExecutor() as executor,
        executor.open_workspace("/") as workspace,
        workspace.start(echo) as process,
    ):
        [supervisor] = pids(await first_line(process))
        os.kill(supervisor, signal.SIGSTOP)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(start, workspace)
                await wait_all_tasks_blocked()
                given_up.cancel()
                await wait_all_tasks_blocked()
                mock_clock.jump(END_SECONDS)
            assert given_up.cancelled_caught
        finally:
            os.kill(supervisor, signal.SIGCONT)
        await process.write(b"goes on\n")
        assert await anext(process.output()) == b"goes on\n"


async def test_no_descriptor_is_lost_and_none_is_inherited() -> None:
    async with LocalExecutor() as executor, executor.open_workspace("/") as workspace:
        lock = os.open("/dev/null", os.O_RDONLY)
        os.set_inheritable(lock, True)
        await run(workspace, "true")
        before = os.listdir("/proc/self/fd")
        for pty in (False, True):
            _, listed = await run(workspace, "ls /proc/self/fd", pty=pty)
            assert listed.split() == ["0", "1", "2", "3"], "3 is ls's own"
        with pytest.raises(Exception, match="not found"):
            async with workspace.start(Command(argv=("no-such-program",), pty=True, stdin=True)):
                pass
        assert os.listdir("/proc/self/fd") == before
        os.close(lock)


async def test_a_closed_executor_starts_nothing() -> None:
    async with LocalExecutor() as executor:
        pass
    async with executor.open_workspace("/") as workspace:
        with pytest.raises(Exception, match="executor is closed"):
            await run(workspace, "true")
