"""Commands on any executor: how they start, what they see, when they are finished."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from tests.executors.running import collect, first_line, run
from vaala_executors import Command, Executor, Exit, StartFailed, Workspace


async def test_exit_code_and_both_outputs_in_order(workspace: Workspace) -> None:
    ended, output = await run(workspace, "echo a; echo b >&2; echo c; exit 7")
    assert (ended, output) == (Exit(7, None), "a\nb\nc\n")


async def test_exit_by_signal(workspace: Workspace) -> None:
    assert (await run(workspace, "kill -SEGV $$"))[0] == Exit(None, 11)


@pytest.mark.parametrize("shell", ["cat", "python3", "read x", "cat | cat"])  # D1-1
async def test_stdin_is_at_its_end_at_once(workspace: Workspace, shell: str) -> None:
    assert (await run(workspace, shell))[1] == ""


async def test_no_controlling_terminal(workspace: Workspace) -> None:  # D1-4
    ended, output = await run(workspace, "read password </dev/tty")
    assert ended.code != 0
    assert "/dev/tty" in output


GIT = "git -c user.name=n -c user.email=e@example.org -c commit.gpgsign=false"


async def test_git_starts_no_editor(workspace: Workspace) -> None:  # D1-2
    ended, output = await run(
        workspace,
        f"""set -e
        git init -q -b main . ; echo 1 >f; git add f; {GIT} commit -qm one
        git checkout -qb other; echo 2 >f; {GIT} commit -qam two
        git checkout -q main; echo 3 >f; {GIT} commit -qam three
        {GIT} rebase -q other && exit 9
        echo both >f; git add f
        {GIT} rebase --continue
        {GIT} commit --amend
        git log --format=%s""",
    )
    assert ended == Exit(0, None), output
    assert output.endswith("three\ntwo\none\n")


async def test_git_starts_no_pager(workspace: Workspace) -> None:  # D1-3
    ended, output = await run(
        workspace,
        f"""git init -q . ; for n in $(seq 60); do {GIT} commit -q --allow-empty -m $n; done
        git log --oneline""",
        pty=True,
    )
    assert ended == Exit(0, None)
    assert output.count("\n") == 60


@pytest.mark.parametrize(
    "shell",
    [
        "sleep 30 & echo done",  # D2-1
        "python3 -c 'import time; print(flush=True); time.sleep(30)' & echo done",  # D2-2
        "nohup sleep 30 >/dev/null 2>&1 & echo done",  # D2-3
    ],
)
async def test_what_runs_in_the_background_holds_nothing_up(
    workspace: Workspace, shell: str
) -> None:
    with trio.fail_after(15):
        ended, output = await run(workspace, shell)
    assert ended == Exit(0, None)
    assert "done\n" in output


async def test_all_that_the_command_wrote_comes_even_if_read_late(workspace: Workspace) -> None:
    async with workspace.start(Command(shell="sleep 30 & seq 5000")) as process:
        await process.wait()
        assert (await collect(process)).split() == [b"%d" % n for n in range(1, 5001)]


async def test_output_ends_while_a_grandchild_floods_the_pipe(workspace: Workspace) -> None:
    async with workspace.start(Command(shell="yes & echo first")) as process:
        with trio.fail_after(15):
            assert b"first" in await collect(process)


async def test_output_waits_for_a_command_that_closed_it(workspace: Workspace) -> None:
    shell = "exec >&- 2>&-; read x; exit 5"
    async with workspace.start(Command(shell=shell, stdin=True)) as process:
        with trio.move_on_after(0.05) as scope:
            await collect(process)
        assert scope.cancelled_caught
        await process.write(b"\n")
        assert await process.wait() == Exit(5, None)


async def test_cancel_of_waits_leaves_the_command_alone(workspace: Workspace) -> None:
    async with workspace.start(Command(shell="read x; echo $x", stdin=True)) as process:
        with trio.move_on_after(0):
            await process.wait()
        with trio.move_on_after(0):
            await collect(process)
        await process.write(b"still here\n")
        assert await collect(process) == b"still here\n"


async def test_several_tasks_wait_for_one_exit(workspace: Workspace) -> None:
    ended: list[Exit] = []

    async def wait() -> None:
        ended.append(await process.wait())

    command = Command(shell="read x; exit 3", stdin=True)
    async with workspace.start(command) as process, trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(wait)
        nursery.start_soon(collect, process)
        await trio.testing.wait_all_tasks_blocked()
        await process.write(b"\n")
    assert ended == [Exit(3, None)] * 3


async def test_stdin_is_written_and_closed(workspace: Workspace) -> None:
    big = os.urandom(1 << 20)
    received: list[bytes] = []

    async def receive() -> None:
        received.append(await collect(process))

    command = Command(argv=("cat",), stdin=True)
    async with workspace.start(command) as process, trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await process.write(big)
        await process.close_stdin()
        await process.close_stdin()
    assert received == [big]


async def test_writing_to_what_does_not_read(workspace: Workspace) -> None:
    async with workspace.start(Command(shell="exec <&-; echo; read x </dev/zero")) as process:
        with pytest.raises(BrokenPipeError, match="reads no standard input"):
            await process.write(b"x")
    async with workspace.start(Command(shell="exit", stdin=True)) as process:
        await process.wait()
        with pytest.raises(BrokenPipeError, match="has ended"):
            await process.write(b"x")


async def test_a_command_that_nobody_reads_waits(workspace: Workspace) -> None:
    async with workspace.start(Command(shell="yes | head -c 1000000; echo end")) as process:
        with trio.move_on_after(0.2) as scope:
            await process.wait()
        assert scope.cancelled_caught, "a pipe cannot hold it all"
        assert len(await collect(process)) == 1_000_004


async def test_environment(executor: Executor, workspace: Workspace, directory: Path) -> None:
    _, output = await run(workspace, "env", env={"OWN": "a=b\nc", "LESS": "mine"})
    assert "TEST_PROVIDER_KEY" not in output
    assert "\nOWN=a=b\nc\n" in output
    assert "\nLESS=mine\n" in output
    assert f"\nPWD={directory}\n" in output
    for line in ("PAGER=cat", "GIT_TERMINAL_PROMPT=0", "TERM=dumb", "GIT_EDITOR=:"):
        assert f"\n{line}\n" in output


async def test_a_variable_that_is_taken_out(workspace: Workspace) -> None:
    env = {"HOME": None, "PAGER": None, "NOT_THERE": None, "KEPT": ""}
    _, output = await run(workspace, "env; echo ${HOME-no home}", env=env)
    lines = output.splitlines()
    assert {"no home", "KEPT="} <= set(lines)
    assert not {line.partition("=")[0] for line in lines} & {"HOME", "PAGER", "NOT_THERE"}


async def test_signals_have_their_default_meaning(workspace: Workspace) -> None:
    script = "import signal; print([s.name for s in signal.Signals if signal.getsignal(s)==1])"
    _, output = await run(workspace, f"python3 -c '{script}'")
    assert output == "['SIGPIPE', 'SIGXFSZ']\n", "those two are Python's own"


async def test_argv_is_not_read_by_a_shell(workspace: Workspace) -> None:
    words = ("printf", "%s|", "$HOME", "a b", "*", "'\"", "数")
    async with workspace.start(Command(argv=words)) as process:
        assert await collect(process) == "$HOME|a b|*|'\"|数|".encode()


async def test_directory_of_a_command(workspace: Workspace, directory: Path) -> None:  # D8-1
    (directory / "sub").mkdir()
    assert (await run(workspace, "pwd"))[1] == f"{directory}\n"
    assert (await run(workspace, "pwd", cwd="sub"))[1] == f"{directory}/sub\n"
    assert (await run(workspace, "pwd", cwd="/"))[1] == "/\n"
    assert (await run(workspace, "git init -q . && git status --short"))[0] == Exit(0, None)


async def test_directory_that_vanished_and_came_back(
    workspace: Workspace, directory: Path
) -> None:  # D6-1
    os.rmdir(directory)
    with pytest.raises(StartFailed, match=r"working directory .*数据. does not exist"):
        await run(workspace, "echo hi")
    os.mkdir(directory)
    assert (await run(workspace, "echo hi"))[1] == "hi\n"


async def test_directory_that_is_none(workspace: Workspace, directory: Path) -> None:  # D6-3
    (directory / "file").touch()
    with pytest.raises(StartFailed, match=r"file. is not a directory"):
        await run(workspace, "echo hi", cwd="file")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("no-such-program",), "'no-such-program' was not found on PATH"),
        (("./nothing",), r"'\./nothing' or the interpreter in its first line does not exist"),
        (("./script",), "'./script' or the interpreter"),
        (("./plain",), "'./plain' may not be run: Permission denied"),
        (("./odd",), "'./odd' is not executable here"),
        (("a\0b",), "NUL character"),
        (("\ud800",), "a character that cannot be passed on"),
        (("true", "x" * 3_000_000), "too long"),
        (("true", "x" * 9_000_000), "too long"),
    ],
)
@pytest.mark.parametrize("pty", [False, True])
async def test_programs_that_cannot_start(
    workspace: Workspace, directory: Path, argv: tuple[str, ...], message: str, pty: bool
) -> None:
    (directory / "plain").write_text("x")
    for name, text in (("script", "#!/no/such/interpreter\n"), ("odd", "neither\n")):
        (directory / name).write_text(text)
        (directory / name).chmod(0o755)
    with pytest.raises(StartFailed, match=message):
        async with workspace.start(Command(argv=argv, pty=pty)):
            pass


async def test_impossible_variable_names(workspace: Workspace) -> None:
    with pytest.raises(StartFailed, match="environment variable"):
        await run(workspace, "true", env={"A=B": "c"})


async def test_exactly_one_of_argv_and_shell(workspace: Workspace) -> None:
    for command in (Command(), Command(argv=("true",), shell="true")):
        with pytest.raises(ValueError, match="either argv or shell"):
            async with workspace.start(command):
                pass


async def test_pty(workspace: Workspace) -> None:
    shell = "tty >/dev/null && stty size && test -e /dev/tty && read x && echo got $x && stty size"
    async with workspace.start(Command(shell=shell, pty=True, stdin=True)) as process:
        assert await first_line(process) == "24 80"


async def test_pty_takes_input_and_sizes(workspace: Workspace) -> None:
    shell = "stty -echo; echo ready; read x; stty size; echo got $x; cat; echo $TERM"
    async with workspace.start(Command(shell=shell, pty=True, stdin=True)) as process:
        output = process.output()
        assert await anext(output) == b"ready\r\n"
        await process.resize(132, 50)
        await process.write(b"hello\n")
        await process.close_stdin()
        rest = b"".join([chunk async for chunk in output])
        assert rest == b"50 132\r\ngot hello\r\nxterm-256color\r\n"
        assert await process.wait() == Exit(0, None)


async def test_pty_without_stdin_reads_end_of_file(workspace: Workspace) -> None:
    _, output = await run(workspace, "cat; test -t 1 && echo terminal", pty=True)
    assert output == "terminal\r\n"


async def test_interrupt_reaches_the_whole_group(workspace: Workspace) -> None:
    shell = "trap 'echo caught; exit 4' INT; cat"
    async with workspace.start(Command(shell=shell, stdin=True)) as process:
        output = process.output()
        # A shell may lose a signal that comes between its fork and the exec of `cat`.
        await process.write(b"cat runs\n")
        assert await anext(output) == b"cat runs\n"
        process.send_signal("INT")
        assert await anext(output) == b"caught\n"
        assert await process.wait() == Exit(4, None)
        process.send_signal("KILL")
    process.send_signal("KILL")


async def test_exit_is_kept_when_the_end_comes_at_the_same_time(workspace: Workspace) -> None:
    for code in range(20):  # D3-5
        async with workspace.start(Command(shell=f"exit {code}")) as process:
            seen = await process.wait()
            assert await process.end() == seen == Exit(code, None)
            assert await process.end() == Exit(code, None)
        assert await process.wait() == Exit(code, None)


async def test_end_releases_a_task_that_reads(workspace: Workspace) -> None:
    command = Command(shell="sleep 100")
    async with trio.open_nursery() as nursery, workspace.start(command) as process:
        nursery.start_soon(collect, process)
        await trio.testing.wait_all_tasks_blocked()
    assert await process.end() == Exit(None, 15)


async def test_many_at_once(workspace: Workspace) -> None:
    outputs: dict[int, str] = {}

    async def one(number: int) -> None:
        outputs[number] = (await run(workspace, f"echo {number}; sleep 0.01 & exit 0"))[1]

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(40):
                nursery.start_soon(one, number)
    assert outputs == {number: f"{number}\n" for number in range(40)}


async def test_a_clock_that_jumps_loses_no_output(
    workspace: Workspace, autojump_clock: MockClock
) -> None:
    _, output = await run_without_deadline(workspace, "sleep 30 & seq 20000")
    assert output.count("\n") == 20_000


async def run_without_deadline(workspace: Workspace, shell: str) -> tuple[Exit, str]:
    async with workspace.start(Command(shell=shell)) as process:
        output = await collect(process)
        return await process.wait(), output.decode()
