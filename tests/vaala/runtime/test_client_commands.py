"""What clients do with commands: list, page through output, write, resize, end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from tests.vaala.runtime.worlds import World, settle
from tests.vaala.tools.scripted import ScriptedProcess
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala.tools import limits as tool_limits
from vaala.tools.base import ToolContext
from vaala.tools.function import tool
from vaala_executors.process import Command
from vaala_protocol.errors import BadRequest, NotFound, Unreadable


async def in_terminal(context: ToolContext) -> str:
    """Start a command in a terminal."""
    command = await context.commands.start(
        Command(shell="top", pty=True, stdin=True),
        text="top",
        workspace=context.workspace,
        call_id=context.call_id,
    )
    command.to_background()
    return command.id


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    said = newest(request)
    background = {"command": "make", "background": True}
    match said.prompt if not said.results else "":
        case "background":
            events = answer("", ("exec_command", background))
        case "foreground":
            events = answer("", ("exec_command", {"command": "make"}))
        case "agent":
            events = answer("", ("spawn_agent", {"task": "background"}))
        case "terminal":
            events = answer("", ("in_terminal", {}))
        case _:
            events = answer("fine")
    for event in events:
        yield event


class Shop:
    """A conversation in which one command runs."""

    def __init__(self, talk: ConversationHandle, process: ScriptedProcess, command: str) -> None:
        self.talk = talk
        self.process = process
        self.command = command

    async def says(self, data: bytes) -> None:
        self.process.say(data)
        await settle(0.2)

    async def read(self, offset: int = 0, limit_bytes: int = 65_536) -> tuple[str, int, int]:
        page = await self.talk.command_output(self.command, offset, limit_bytes)
        return page.text, page.offset, page.next_offset


@asynccontextmanager
async def running(prompt: str = "background") -> AsyncGenerator[Shop]:
    world = World(FunctionModel(respond), tools=[tool(in_terminal)])
    async with world.talk() as (_, talk):
        await talk.send(prompt)
        await settle(2)
        (command,) = await talk.commands()
        yield Shop(talk, world.executor.workspace.last, command.id)


async def test_commands_of_all_sessions_are_listed(autojump_clock: trio.testing.MockClock) -> None:
    world = World(FunctionModel(respond))
    async with world.talk() as (_, talk):
        assert await talk.commands() == ()
        await talk.run("background")
        await settle(1)
        await talk.run("agent")
        await settle(2)
        first, second = await talk.commands()
        assert (first.session_id, first.command) == (talk.id, "make")
        assert second.session_id != talk.id
        status = await talk.status()
        assert [len(session.commands) for session in status.sessions] == [1, 1]
        world.executor.workspace.processes[0].exits()
        await settle(1)
        assert [one.id for one in await talk.commands()] == [second.id]


async def test_output_is_read_page_by_page_between_characters(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as shop:
        assert await shop.read() == ("", 0, 0)
        text = "one \u20ac two \U0001f600 three"
        await shop.says(text.encode())
        read, offset = "", 0
        while offset < len(text.encode()):
            page, begin, following = await shop.read(offset, 5)
            assert begin == offset < following <= offset + 5
            read, offset = read + page, following
        assert read == text
        await shop.says("\u20ac".encode()[:2])
        assert await shop.read(offset) == ("", offset, offset)  # the rest is on its way
        await shop.says("\u20ac".encode()[2:] + b"\xff.")
        assert await shop.read(offset) == ("\u20ac\ufffd.", offset, offset + 5)
        assert await shop.read(offset, 1) == ("\u20ac\ufffd", offset, offset + 4)  # the least
        assert await shop.read(10**9) == ("", offset + 5, offset + 5)
        with pytest.raises(BadRequest, match="byte 0"):
            await shop.read(-1)
        await shop.says("\u20ac".encode()[:2])
        shop.process.exits(3)
        await settle(1)
        last = await shop.talk.command_output(shop.command, offset + 5)
        assert (last.text, last.running, last.exit_code) == ("\ufffd", False, 3)
        assert last.next_offset == last.total_bytes == offset + 7


async def test_output_in_the_foreground_can_be_read_too(
    autojump_clock: trio.testing.MockClock,
) -> None:
    world = World(FunctionModel(respond))
    async with world.talk() as (runtime, talk):
        await talk.send("foreground")
        await settle(1)
        assert await talk.commands() == ()
        session = (await runtime.conversation(talk.id)).sessions[talk.id]
        (command,) = session.commands._running.values()
        world.executor.workspace.last.say(b"building")
        await settle(1)
        page = await talk.command_output(command.id)
        assert (page.text, page.running) == ("building", True)


async def test_old_output_goes_while_it_runs_and_is_all_there_at_the_end(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_limits, "COMMAND_WINDOW_BYTES_MAX", 50_000)
    async with running() as shop:
        lines = [f"{number:08} \u20ac\n".encode() for number in range(10_000)]
        for start in range(0, len(lines), 100):
            shop.process.say(b"".join(lines[start : start + 100]))
        await settle(1)
        whole = b"".join(lines)
        text, begin, following = await shop.read(0, 100)
        assert len(whole) - 60_000 < begin <= len(whole) - 50_000
        assert text == whole[begin:following].decode()
        shop.process.exits()
        await settle(1)
        read, offset = b"", 0
        while offset < len(whole):
            text, begin, offset = await shop.read(offset, 1 << 20)
            assert begin == len(read)
            read += text.encode()
        assert read == whole


async def test_a_page_that_begins_later_begins_with_a_character(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_limits, "COMMAND_WINDOW_BYTES_MAX", 1_000)
    async with running() as shop:
        await shop.says("\u20ac".encode() * 1_000)
        text, begin, following = await shop.read(0)
        assert begin % 3 == 0
        assert set(text) == {"\u20ac"}
        assert following == 3_000


async def test_only_the_first_of_a_huge_output_is_saved_and_the_newest_is_kept(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_limits, "COMMAND_SAVED_BYTES_MAX", 100_000)
    monkeypatch.setattr("vaala.commanding.COMMAND_SAVED_BYTES_MAX", 100_000)
    async with running() as shop:
        for _ in range(10):
            await shop.says("\u20ac".encode() * 20_000)
        shop.process.exits()
        await settle(1)
        text, begin, following = await shop.read(99_000, 10_000)
        assert (begin, following) == (99_000, 99_999)  # to the border of what was saved
        text, begin, following = await shop.read(following)
        assert (text, begin, following) == ("\ufffd", 99_999, 100_000)
        text, begin, _ = await shop.read(following)
        assert 600_000 - begin >= tool_limits.COMMAND_WINDOW_BYTES_MAX
        assert set(text) == {"\u20ac"}


async def test_a_blob_that_cannot_be_read_is_told(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with running() as shop:
        await shop.says(b"x" * 100_000)
        shop.process.exits()
        await settle(1)
        runtime = shop.talk._runtime
        conversation = await runtime.conversation(shop.talk.id)
        command = conversation.sessions[shop.talk.id].find_command(shop.command)
        assert command is not None
        command._blob = "gone"
        with pytest.raises(Unreadable, match="gone"):
            await shop.read(0)


async def test_input_reaches_the_command(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as shop:
        await shop.talk.write_command(shop.command, "yes\n\ud800")
        assert shop.process.written == [b"yes\n?"]
        await shop.talk.write_command(shop.command, "\x03")
        assert shop.process.signals == ["INT"]
        shop.process.reads_stdin = False
        with pytest.raises(BadRequest, match="has not read its input"):
            await shop.talk.write_command(shop.command, "more")
        shop.process.exits()
        await settle(1)
        with pytest.raises(BadRequest, match="has ended"):
            await shop.talk.write_command(shop.command, "late")


async def test_only_a_terminal_has_a_size(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as shop:
        with pytest.raises(BadRequest, match="no terminal"):
            await shop.talk.resize_command(shop.command, 80, 24)
    async with running("terminal") as shop:
        await shop.talk.resize_command(shop.command, 132, 43)
        assert shop.process.sizes == [(132, 43)]
        for columns, rows in ((0, 1), (1, -1), (10_001, 1)):
            with pytest.raises(BadRequest, match="columns"):
                await shop.talk.resize_command(shop.command, columns, rows)


@pytest.mark.parametrize("signal", ["INT", "HUP"])
async def test_a_signal_leaves_the_command_to_act(
    signal: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with running() as shop:
        await shop.talk.kill_command(shop.command, signal)  # type: ignore[arg-type] # by parameter
        assert shop.process.signals == [signal]
        assert not shop.process.over


async def test_a_tree_is_ended_and_its_agent_is_told(
    autojump_clock: trio.testing.MockClock,
) -> None:
    for signal, sent in (("TERM", []), ("KILL", ["KILL"])):
        async with running() as shop:
            await shop.talk.kill_command(shop.command, signal)  # type: ignore[arg-type] # as above
            assert shop.process.ended_by_us
            assert shop.process.signals == sent
            page = await shop.talk.command_output(shop.command)
            assert (page.running, page.signal) == (False, 15)
            await settle(1)
            assert await shop.talk.commands() == ()
            await shop.talk.kill_command(shop.command)  # harmless once more
            (session,) = (await shop.talk.status()).sessions
            assert session.queued == 1


async def test_an_unknown_command_is_named(autojump_clock: trio.testing.MockClock) -> None:
    async with running() as shop:
        for use in (
            lambda: shop.talk.command_output("c0"),
            lambda: shop.talk.write_command("c0", "x"),
            lambda: shop.talk.resize_command("c0", 80, 24),
            lambda: shop.talk.kill_command("c0"),
        ):
            with pytest.raises(NotFound, match=f"'c0'.*{shop.command}"):
                await use()
