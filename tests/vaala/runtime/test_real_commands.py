"""Real commands in real turns: what the model is told, and what is left when the turn is over."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import trio

from tests.executors.running import gone
from tests.vaala.runtime.driving import calls, conversation, idle, until
from vaala.models.base import ModelEvent, ModelRequest
from vaala.stream import Update
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala_protocol.base import decode
from vaala_protocol.calls import CommandDetails
from vaala_protocol.events import CommandOutput, Frame

SECONDS_MAX = 20
"""Nothing here comes near it, however slow the machine: what waits for a person waits for ever."""


async def obey(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    """Make the call that the prompt spells out, then say what came of it."""
    said = newest(request)
    if said.results:
        events = answer(said.results[-1])
    elif said.prompt.startswith("{"):
        events = answer("", ("exec_command", decode(said.prompt.encode())))
    else:
        events = answer("", ("exec_command", {"command": said.prompt}))
    for event in events:
        yield event


async def told(directory: Path, prompt: str) -> str:
    """Return what the model was told of a command; the next turn must work too."""
    async with conversation(FunctionModel(obey), directory) as (_, talk):
        with trio.fail_after(SECONDS_MAX):
            text = (await talk.run(prompt)).text
            assert (await talk.run("echo still here")).text == "still here\n"
    return text


GIT = "git init -q -b main . && git config user.email me@example.org && git config user.name me && "
COMMITS = 'for n in $(seq 60); do git commit -q --allow-empty -m "number $n"; done && '
CONFLICT = (
    "echo a >f && git add f && git commit -qm a && git checkout -qb side && echo b >f && "
    "git commit -qam b && git checkout -q main && echo c >f && git commit -qam c && "
    "git checkout -q side; git rebase main >/dev/null 2>&1; echo d >f; git add f; "
)


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("cat", "No output"),  # D1-1
        ("python3", "No output"),
        ("read x; echo $?", "1\n"),
        (
            GIT + "git commit --allow-empty",
            "[Ee]mpty commit message|unset|editor|Exit code",
        ),  # D1-2
        (GIT + CONFLICT + "git rebase --continue", "Successfully rebased|Exit code"),
        (GIT + COMMITS + "git log --oneline", "number 1\n"),  # D1-3
        ("read x </dev/tty; echo $?", "/dev/tty"),  # D1-4
        ("sleep 30 & echo done", "done"),  # D2-1
        ("nohup sleep 30 >/dev/null 2>&1 & echo done", "done"),  # D2-3
        ("seq 5000; echo 2 failed", "2 failed\n$"),  # D4-3
        ("head -c 4096 /dev/urandom", ""),  # D5-1
        (r"printf 'a\0b'", "a␀b"),
        (r"printf '\xff\xfe'", "\ufffd\ufffd"),
        (r"printf '\033]0;pwn\007\033[2J\033]52;c;ZWNobw==\007hi'", "^hi$"),  # D5-2
        ("printf '%333s' '' | tr ' ' x; printf '\\346\\226\\207%.0s' $(seq 400)", "文文"),  # D5-3
    ],
)
async def test_no_command_waits_for_a_person_or_breaks_the_turn(
    tmp_path: Path, command: str, shown: str
) -> None:
    text = await told(tmp_path, command)
    assert re.search(shown, text)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)


async def test_a_server_in_the_background_lives_until_its_conversation_ends(
    tmp_path: Path,
) -> None:  # D2-2, D3-3
    async with conversation(FunctionModel(obey), tmp_path) as (runtime, talk):
        session = await (await runtime.conversation(talk.id)).root()
        for number in range(3):
            command = f"echo $$ >pid{number}; exec sleep 1000"
            await talk.run(f'{{"command": "{command}", "background": true}}')
        assert len(session.snapshot().commands) == 3
    for number in range(3):
        await gone(int((tmp_path / f"pid{number}").read_text()))


@pytest.mark.parametrize(
    "command",
    [
        "trap '' TERM; echo $$ >pid; while :; do sleep 1; done",  # D3-1
        "echo $$ >pid; yes",  # D4-2
    ],
)
async def test_a_time_out_ends_the_tree_and_tells_what_came(tmp_path: Path, command: str) -> None:
    text = await told(tmp_path, f'{{"command": "{command}", "timeout_s": 1}}')
    assert re.search("timed out|time limit|limit of 1 s|after 1 s", text)  # D3-4
    assert "pid" not in text
    await gone(int((tmp_path / "pid").read_text()))


def has_output(update: Update) -> bool:
    match update:
        case Frame(event=CommandOutput()):
            return True
        case _:
            return False


async def test_an_interrupt_leaves_no_process_of_a_pipeline(tmp_path: Path) -> None:  # D3-2, A5-3
    (tmp_path / "reader").write_text(
        "echo $$ >>pids\nuntil [ $(wc -l <pids) = 2 ]; do sleep 0.01; done\necho up\nexec cat\n"
    )
    command = "sh -c 'echo $$ >>pids; exec sleep 100' | sh reader"
    async with conversation(FunctionModel(obey), tmp_path) as (_, talk):
        with trio.fail_after(SECONDS_MAX):
            async with talk.subscribe() as updates:
                await talk.send(command)
                await until(updates, has_output)
            await talk.interrupt()
            await idle(talk)
        assert [call.state for call in await calls(talk)] == ["cancelled"]
        for pid in (tmp_path / "pids").read_text().split():
            await gone(int(pid))
        assert (await talk.run("echo still here")).text == "still here\n"


async def test_huge_output_is_cut_and_all_of_it_kept(tmp_path: Path) -> None:  # D4-1, D4-4
    async with conversation(FunctionModel(obey), tmp_path) as (runtime, talk):
        with trio.fail_after(60):
            text = (await talk.run("yes line | head -c 20000000; echo; echo the end")).text
        (call,) = await calls(talk)
        assert isinstance(call.details, CommandDetails)
        blob = call.details.output_blob
        log = (await runtime.conversation(talk.id)).log
        assert blob is not None
        assert await log.blobs.size(blob) == 20_000_000 + len("\nthe end\n")
    assert len(text.encode()) < 64_000
    assert text.endswith("the end\n")
    assert blob in text
