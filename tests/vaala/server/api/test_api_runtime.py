"""The server itself: who may speak with it, what it tells, and all conversations at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.vaala.runtime.driving import script
from tests.vaala.runtime.fake_executor import FakeExecutor
from tests.vaala.server.api.serving import Client, is_turn, machine, server, settled
from vaala.server import limits
from vaala.server.api import runtime_watch
from vaala.server.api.memory import resident_bytes
from vaala.server.api.versions import version
from vaala_protocol.errors import (
    BadRequest,
    Busy,
    Incompatible,
    NotFound,
    Outdated,
)
from vaala_protocol.methods import catalog, conversation
from vaala_protocol.methods.base import Request
from vaala_protocol.methods.command import (
    CommandKillParams,
    CommandListParams,
    CommandOutputParams,
    CommandResizeParams,
    CommandWriteParams,
)
from vaala_protocol.methods.runtime import (
    ClientInfo,
    ConfigChanged,
    ConfigProblem,
    InitializeParams,
    NoticeNotification,
    ReloadParams,
    RowChanged,
    RowRemoved,
    RuntimeEventNotification,
    RuntimeResyncNotification,
    RuntimeStatusParams,
    RuntimeSubscribeParams,
    RuntimeUnsubscribeParams,
    ShutdownParams,
)
from vaala_protocol.methods.session import SessionInterruptParams
from vaala_protocol.pages import ListQuery

LONG = {"say": "working on it", "hang": True}


def hello(name: str, library: str = "", protocol: str = "1.0") -> InitializeParams:
    client = ClientInfo(name=name, version="9.9.9", library=library)
    return InitializeParams(client=client, protocol=protocol)


async def greet(client: Client, params: InitializeParams) -> tuple[str, ...]:
    return (await client.call(params)).notices


@pytest.mark.parametrize(
    ("library", "protocol", "auto_started", "outcome"),
    [
        ("0.1.0", "1.0", True, "serves"),
        ("0.0.9", "1.7", True, "serves"),
        ("0.2.0", "1.0", True, "yields"),
        ("0.1.0.1", "2.0", True, "yields"),
        ("0.2.0", "1.0", False, "serves with a notice"),
        ("", "1.0", True, "serves"),
        ("", "2.0", True, "refuses"),
        ("0.0.1", "0.9", True, "refuses"),
    ],
)
async def test_an_idle_server_yields_to_newer_clients(
    autojump_clock: object, library: str, protocol: str, auto_started: bool, outcome: str
) -> None:
    """H9-4."""
    async with (
        server(auto_started=auto_started) as served,
        served.wire() as wire,
        trio.open_nursery() as nursery,
    ):
        client = Client(wire)
        nursery.start_soon(client.run, nursery)
        params = hello("vaala.client", library, protocol)
        match outcome:
            case "yields":
                with pytest.raises(Outdated, match="start another"):
                    await greet(client, params)
                assert len(served.stopped) == 1
            case "refuses":
                with pytest.raises(Incompatible, match="upgrade the older one"):
                    await greet(client, params)
            case _:
                notices = await greet(client, params)
                assert len(notices) == (outcome == "serves with a notice")
        assert bool(served.stopped) == (outcome == "yields")
        nursery.cancel_scope.cancel()


async def test_a_busy_server_serves_a_newer_client(autojump_clock: object) -> None:
    async with (
        server(script(LONG), auto_started=True, executors=machine()) as served,
        served.client() as driver,
    ):
        talk = await driver.create()
        await driver.send(talk, "go")
        async with served.client("editor", library="0.2.0") as newer:
            assert newer.greeting is not None
            (notice,) = newer.greeting.notices
            assert "vaala restart" in notice
        assert served.stopped == []


def test_versions_compare_as_numbers() -> None:
    assert version("0.10.0") > version("0.9.9")
    assert version("2") > version("1.9.9")
    assert version("0.1.0") == version("0.1.0rc3") == version("0.1.0.dev5")
    assert version("no number") < version("0.0.1")


async def test_a_configuration_with_problems_is_told_at_once(autojump_clock: object) -> None:
    async with server() as served:
        wrong = ConfigProblem(file="/c/a.yaml", line=3, key="a.api_ky", text="no\nsuch key")
        served.keeper.problems = (wrong, ConfigProblem(file="/c/b.yaml", text="not YAML"))
        async with served.client() as client:
            assert client.greeting is not None
            (notice,) = client.greeting.notices
            assert "/c/a.yaml:3: a.api_ky: no such key (and 1 more" in notice
            result = await client.call(ReloadParams())
            assert (result.generation, len(result.problems)) == (1, 2)


async def test_the_name_of_a_client_is_bounded(autojump_clock: object) -> None:
    async with server() as served, served.wire() as wire, trio.open_nursery() as nursery:
        client = Client(wire)
        nursery.start_soon(client.run, nursery)
        for name in ("", "two\nlines", "x" * (limits.CLIENT_NAME_CHARACTERS_MAX + 1)):
            with pytest.raises(BadRequest):
                await client.call(hello(name))
        await client.call(hello("x"))
        nursery.cancel_scope.cancel()


async def test_status_tells_what_is_alive(autojump_clock: object) -> None:
    async with (
        server(script(LONG), executors=machine()) as served,
        served.client() as one,
        served.client() as two,
    ):
        talk = await one.create()
        await two.watch(talk)
        await one.send(talk, "go")
        await settled()
        status = await two.call(RuntimeStatusParams())
        assert (status.clients, status.address, status.config_generation) == (2, "memory", 1)
        assert status.memory_bytes > 1_000_000
        (alive,) = status.conversations
        assert (alive.id, alive.status, alive.subscribers) == (talk, "running", 1)
        assert alive.sessions[0].turn_id is not None
        assert alive.sessions[0].waits
        with pytest.raises(Busy):
            await one.call(ShutdownParams(only_if_idle=True))
        await one.call(SessionInterruptParams(conversation_id=talk))
        await settled()
        await one.call(ShutdownParams(only_if_idle=True, reason="enough"))
        await settled()
        assert served.stopped == ["enough"]


async def test_of_very_many_conversations_status_tells_those_at_work(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STATUS_CONVERSATIONS_MAX", 3)
    async with server(script(LONG), executors=machine()) as served, served.client() as client:
        talks: list[str] = []
        for _ in range(6):
            talks.append(await client.create())
            await trio.sleep(1.0)
        await client.send(talks[1], "go")
        await settled()
        await trio.sleep(1.0)
        await client.watch(talks[0])
        status = await client.call(RuntimeStatusParams())
        assert status.open_conversations == 6
        told = [alive.id for alive in status.conversations]
        assert told == [talks[0], talks[1], talks[5]]


def test_memory_is_what_the_kernel_says() -> None:
    told = Path("/proc/self/status").read_text().partition("VmRSS:")[2].split()[0]
    assert abs(resident_bytes() - int(told) * 1024) < 16 << 20


def is_runtime_event(kind: type[Any]) -> Callable[[Any], bool]:
    return lambda note: (
        isinstance(note, RuntimeEventNotification) and isinstance(note.frame.event, kind)
    )


async def test_a_sidebar_never_polls(autojump_clock: object) -> None:
    async with (
        server(script({"say": "ok"}), executors=machine()) as served,
        served.client("sidebar") as sidebar,
        served.client("driver") as driver,
    ):
        first = await sidebar.call(RuntimeSubscribeParams())
        assert first.conversations == ()
        talk = await driver.create()
        await driver.watch(talk)
        await driver.send(talk, "hello")
        await driver.hear(is_turn("completed"))
        row = (await sidebar.hear(is_runtime_event(RowChanged))).frame.event.row
        assert (row.id, row.info.title) == (talk, "hello")
        served.runtime.hub.config_changed(2)
        changed = await sidebar.hear(is_runtime_event(ConfigChanged))
        assert changed.frame.event.generation == 2
        await driver.call(conversation.ConversationDeleteParams(conversation_id=talk))
        gone = await sidebar.hear(is_runtime_event(RowRemoved))
        assert gone.frame.event.conversation_id == talk
        seqs = [note.frame.seq for note in sidebar.heard]
        assert seqs == list(range(first.seq + 1, first.seq + 1 + len(seqs)))
        await sidebar.call(RuntimeUnsubscribeParams())
        sidebar.heard.clear()
        served.runtime.hub.config_changed(3)
        await settled()
        assert sidebar.heard == []
        assert served.runtime.hub.subscribers == 0


async def test_a_fault_in_the_runtime_s_watch_is_never_silent(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch, errors_logged: list[str]
) -> None:
    """The first one costs a snapshot, the second the connection: nothing is missed."""

    def faulty(published: object) -> bytes:
        raise ZeroDivisionError("a fault in an event")

    with pytest.RaisesGroup(ZeroDivisionError, flatten_subgroups=True):
        async with (
            server(script({"say": "ok"}), executors=machine()) as served,
            served.client() as sidebar,
            served.client("driver") as driver,
        ):
            await sidebar.call(RuntimeSubscribeParams())
            monkeypatch.setattr(runtime_watch, "runtime_event_message", faulty)
            served.runtime.hub.config_changed(2)
            told = await sidebar.hear(lambda note: isinstance(note, RuntimeResyncNotification))
            assert told.snapshot.config_generation == 2
            served.runtime.hub.config_changed(3)
            await settled()
            assert sidebar.closed is not None
            assert sidebar.closed.code == 1011
            await driver.call(RuntimeStatusParams())
    assert errors_logged[0].startswith("the runtime cannot be shown")


async def test_lines_for_the_person_reach_every_client(autojump_clock: object) -> None:
    async with server() as served, served.client() as one, served.client() as two:
        served.api.clients.notify("warning", "vaala was upgraded")
        for client in (one, two):
            told = await client.hear(lambda note: isinstance(note, NoticeNotification))
            assert told == NoticeNotification(level="warning", text="vaala was upgraded")
        two.stop_reading()
        for number in range(10 * limits.NOTICES_MAX):
            served.api.clients.notify("info", f"{number}")
        two.read_on()
        await settled()
        assert two.heard[-1].text == f"{10 * limits.NOTICES_MAX - 1}"


async def test_the_catalogue_has_no_secrets_and_names_what_there_is(
    autojump_clock: object,
) -> None:
    async with server(script({"say": "ok"}), executors=machine()) as served:
        served.keeper.values["providers.yaml", ("a",)] = "***"
        async with served.client() as client:
            models = await client.call(catalog.ModelListParams())
            assert await client.call(catalog.ModelGetParams(name="scripted")) == models.models[0]
            (listed,) = (await client.call(catalog.AgentListParams())).agents
            assert "exec_command" in listed.tools
            assert listed.instructions == ""
            got = await client.call(catalog.AgentGetParams(name="default"))
            assert got.instructions
            (executor,) = (await client.call(catalog.ExecutorListParams())).executors
            assert await client.call(catalog.ExecutorGetParams(name="local")) == executor
            assert executor.kind == "custom"
            value = await client.call(catalog.ConfigGetParams(file="providers.yaml", key=("a",)))
            assert value.value == "***"
            changed = await client.call(
                catalog.ConfigSetParams(file="models.yaml", key=("default",), value="x/y")
            )
            assert changed.generation == 2
            assert (await client.call(catalog.ConfigListParams())).generation == 2
            unknowns: tuple[Request[Any], ...] = (
                catalog.ModelGetParams(name="x"),
                catalog.AgentGetParams(name="x"),
                catalog.ExecutorGetParams(name="x"),
                catalog.ConfigGetParams(file="x"),
            )
            for unknown in unknowns:
                with pytest.raises(NotFound):
                    await client.call(unknown)


async def test_conversations_are_made_found_changed_and_copied(
    autojump_clock: object, tmp_path: Path
) -> None:
    async with (
        server(script({"say": "an answer about otters"}), executors=machine()) as served,
        served.client() as client,
    ):
        params = conversation.ConversationCreateParams(directory="/w", client_id="c1")
        made = await client.call(params)
        assert (await client.call(params)).id == made.id
        get = conversation.ConversationGetParams(conversation_id=made.id)
        assert (await client.call(get)).info.id == made.id
        await client.watch(made.id)
        await client.send(made.id, "tell me")
        await client.hear(is_turn("completed"))
        renamed = await client.call(
            conversation.ConversationRenameParams(conversation_id=made.id, title="Otters")
        )
        assert renamed.title == "Otters"
        tagged = await client.call(
            conversation.ConversationUpdateParams(
                conversation_id=made.id, tags=("a",), directory="/elsewhere"
            )
        )
        assert (tagged.tags, tagged.locations[0].directory) == (("a",), "/elsewhere")
        found = await client.call(conversation.ConversationSearchParams(text="otters"))
        assert {one.conversation.id for one in found.results} == {made.id}
        query = ListQuery(tag="a")
        rows = (await client.call(conversation.ConversationListParams(query=query))).rows
        assert [row.id for row in rows] == [made.id]

        fork = await client.call(conversation.ConversationForkParams(conversation_id=made.id))
        assert fork.fork_parent == made.id
        path = tmp_path / "archive.tar.gz"
        export = conversation.ConversationExportParams(conversation_id=made.id, path=str(path))
        assert (await client.call(export)).size_bytes == path.stat().st_size
        imported = await client.call(conversation.ConversationImportParams(path=str(path)))
        assert imported.id not in (made.id, fork.id)
        archived = await client.call(
            conversation.ConversationArchiveParams(conversation_id=made.id)
        )
        assert archived.archived
        await client.call(conversation.ConversationDeleteParams(conversation_id=made.id))
        with pytest.raises(NotFound):
            await client.call(get)


async def test_a_command_is_looked_at_written_to_and_ended(autojump_clock: object) -> None:
    executor = FakeExecutor()
    start = {"tool": "exec_command", "arguments": {"command": "serve", "background": True}}
    async with (
        server(script({"call": [start]}, {"say": "ok"}), executors={"local": executor}) as served,
        served.client() as client,
    ):
        talk = await client.create()
        await client.watch(talk)
        await client.send(talk, "go")
        await client.hear(is_turn("completed"))
        process = executor.workspace.last
        (info,) = (await client.call(CommandListParams(conversation_id=talk))).commands
        assert info.command == "serve"
        process.say(b"hello there")
        await trio.sleep(2)
        output = await client.call(
            CommandOutputParams(conversation_id=talk, command_id=info.id, offset=6, limit_bytes=100)
        )
        assert (output.text, output.offset, output.next_offset) == ("there", 6, 11)
        texts = ("one\n", "two\n", "three\n")
        ids = [
            await client.begin(
                CommandWriteParams(conversation_id=talk, command_id=info.id, text=text)
            )
            for text in texts
        ]
        for id in ids:
            await client.answer_of(id)
        assert process.written == [text.encode() for text in texts]
        with pytest.raises(BadRequest):
            await client.call(
                CommandResizeParams(conversation_id=talk, command_id=info.id, columns=80, rows=25)
            )
        process.reads_stdin = False
        with pytest.raises(BadRequest, match="has not read its input"):
            await client.call(
                CommandWriteParams(conversation_id=talk, command_id=info.id, text="x")
            )
        await client.call(
            CommandKillParams(conversation_id=talk, command_id=info.id, signal="KILL")
        )
        await settled()
        assert (await client.call(CommandListParams(conversation_id=talk))).commands == ()
        with pytest.raises(NotFound):
            await client.call(
                CommandWriteParams(conversation_id=talk, command_id="no-such", text="x")
            )
