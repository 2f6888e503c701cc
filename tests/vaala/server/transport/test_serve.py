"""The life of a server, in this process: what it writes, who it lets in, how it ends."""

from __future__ import annotations

import json
import logging
import os
import stat
from pathlib import Path

import pytest
import trio
import trio.testing
from trio_websocket import ConnectionClosed

from tests.vaala.server.transport.doors import ask_on, open_files, tasks
from tests.vaala.server.transport.served import connected, served, talk
from vaala.config.errors import ConfigError
from vaala.config.keeper import Keeper
from vaala.dao.errors import StoreLocked
from vaala.discovery import NoRecord, ServerRecord, bearer, place_of, read_record, write_record
from vaala.server import limits
from vaala.server.errors import CannotPublish, DataUnusable
from vaala.server.serve import serve
from vaala.server.settings import ServeSettings
from vaala.server.stopping import Stop
from vaala.server.transport.listening import CannotListen, listen
from vaala_protocol.methods.catalog import ConfigListResult

HANG = "steps:\n  - say: Thinking.\n    hang: true\n"


def mode(path: Path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


def nobody(record: ServerRecord) -> None:
    raise AssertionError("it must not get ready")


async def view(record: ServerRecord, path: str) -> object:
    assert record.port is not None
    async with await trio.open_tcp_stream("127.0.0.1", record.port) as stream:
        given = {"authorization": bearer(record.token)}
        answer = await ask_on(stream, f"127.0.0.1:{record.port}", path, more=given)
        assert answer.status == 200, answer.body
        return json.loads(answer.body)


async def test_the_record_leads_to_the_server_and_goes_with_it(tmp_path: Path) -> None:
    path = place_of(tmp_path, os.environ).record
    async with served(tmp_path) as server:
        found = read_record(path, tmp_path)
        assert found == server.record
        async with talk(server.record) as client:
            status = await client.ask("runtime/status")
        assert status["server"]["instance"] == server.record.instance
        assert status["address"] == f"127.0.0.1:{server.record.port}"
    assert isinstance(read_record(path, tmp_path), NoRecord)


async def test_what_it_writes_is_for_its_owner_whatever_the_umask(tmp_path: Path) -> None:  # H7-3
    data = tmp_path / "data"
    before = os.umask(0)
    try:
        async with served(data, socket=tmp_path / "s") as server:
            assert mode(data) == 0o700
            assert mode(place_of(data, os.environ).record) == 0o600
            assert mode(tmp_path / "s") == 0o600
            assert server.record.socket == str(tmp_path / "s")
            async with await trio.open_unix_socket(str(tmp_path / "s")) as stream:
                given = {"authorization": bearer(server.record.token)}
                answer = await ask_on(stream, "any", "/api/v1/status", more=given)
                assert answer.status == 200
    finally:
        os.umask(before)
    assert "s" not in os.listdir(tmp_path)


async def test_the_views_show_what_is_there(tmp_path: Path) -> None:
    async with served(tmp_path) as server, talk(server.record) as client:
        made = await client.ask(
            "conversation/create", directory=str(tmp_path), title="Find me", clientId="c1"
        )
        await client.say(made["id"], "words to search for")
        listed = await view(server.record, "/api/v1/conversations?limit=5")
        assert [row["info"]["id"] for row in listed["rows"]] == [made["id"]]  # type: ignore[index]
        one = await view(server.record, f"/api/v1/conversations/{made['id']}")
        assert one["info"]["title"] == "Find me"  # type: ignore[index]
        items = await view(server.record, f"/api/v1/conversations/{made['id']}/items")
        assert "words to search for" in json.dumps(items)
        for path, name in (
            ("tools", "read_file"), ("agents", "default"), ("agents/default", "instructions"),
            ("executors", "local"), ("models", "scripted"), ("config", "providers.yaml"),
            ("status", made["id"]),
        ):  # fmt: skip
            assert name in json.dumps(await view(server.record, f"/api/v1/{path}"))


async def test_no_view_tells_a_secret(tmp_path: Path) -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    os.makedirs(directory)
    text = "team:\n  base_url: http://127.0.0.1:9/v1\n  api_key: sk-very-secret-key\n"
    (directory / "providers.yaml").write_bytes(text.encode())
    async with served(tmp_path) as server:
        for path in ("config", "config/providers.yaml", "models", "agents", "status"):
            shown = json.dumps(await view(server.record, f"/api/v1/{path}"))
            assert "very-secret" not in shown
            assert server.record.token not in shown
        assert "127.0.0.1:9" in json.dumps(
            await view(server.record, "/api/v1/config/providers.yaml")
        )


async def test_a_reload_reaches_the_runtime_and_its_watchers(tmp_path: Path) -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    os.makedirs(directory)
    async with served(tmp_path) as server, talk(server.record) as client:
        await client.ask("runtime/subscribe")
        agents = "reviewer:\n  description: Reads.\n  instructions: Review.\n"
        (directory / "agents.yaml").write_bytes(agents.encode())
        assert (await client.ask("runtime/reload"))["generation"] == 2
        await client.until('"config/changed"')
        listed = await client.ask("agent/list")
        assert {one["name"] for one in listed["agents"]} == {"default", "reviewer"}
        (directory / "agents.yaml").write_bytes(b"reviewer: [")
        reloaded = await client.ask("runtime/reload")
        assert (reloaded["generation"], len(reloaded["problems"])) == (2, 1)
        assert (await client.ask("agent/list")) == listed


async def test_clients_are_told_when_it_ends_and_it_ends_soon(tmp_path: Path) -> None:  # H8-5
    async with served(tmp_path) as server:
        record = server.record
        assert record.port is not None
        half = await trio.open_tcp_stream("127.0.0.1", record.port)
        await half.send_all(b"GET / HT")
        async with half, talk(record) as one, talk(record) as other:
            began = trio.current_time()
            server.stop.ask("the test ends")
            for client in (one, other):
                with pytest.raises(ConnectionClosed) as closed:
                    await client.socket.get_message()
                assert closed.value.reason is not None
                assert closed.value.reason.code == 1001
            await server.ended.wait()
            assert trio.current_time() - began < 3


async def test_a_server_that_ends_welcomes_nobody(tmp_path: Path) -> None:
    """Else the client would hear that the server it has found was stopped on purpose."""
    async with served(tmp_path) as server, connected(server.record) as late:
        server.stop.ask("nobody has used it")
        with pytest.raises(RuntimeError, match="ending"):
            await late.greet()


async def test_who_asks_for_the_end_is_answered(tmp_path: Path) -> None:
    async with served(tmp_path) as server, talk(server.record) as client:
        assert await client.ask("runtime/shutdown") == {}
        with pytest.raises(ConnectionClosed) as closed:
            await client.socket.get_message()
        assert closed.value.reason is not None
        assert closed.value.reason.code == 1001
        with trio.fail_after(5):
            await server.ended.wait()


async def test_a_second_server_is_refused_and_told_who_has_the_data(
    tmp_path: Path,
) -> None:  # G2-3
    async with served(tmp_path) as server:
        with pytest.raises(StoreLocked, match=f"{tmp_path} is in use by process {os.getpid()}"):
            await serve(ServeSettings(data=tmp_path, port=0), os.environ, Stop(), nobody)
        assert read_record(place_of(tmp_path, os.environ).record, tmp_path) == server.record


class Race:
    """Servers that want the same data directory at the same moment."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.stop = Stop()
        self.won: list[ServerRecord] = []
        self.lost: list[StoreLocked] = []

    async def start(self) -> None:
        settings = ServeSettings(data=self.data, port=0)
        try:
            await serve(settings, os.environ, self.stop, self.won.append)
        except StoreLocked as locked:
            self.lost.append(locked)

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.start)
            nursery.start_soon(self.start)
            while not (self.won and self.lost):
                await trio.testing.wait_all_tasks_blocked(0.001)
            self.stop.ask("the race is over")


async def test_of_servers_that_start_at_once_one_wins(tmp_path: Path) -> None:  # G2-3
    for number in range(20):
        race = Race(tmp_path / str(number))
        with trio.fail_after(60):
            await race.run()
        assert len(race.won) == 1
        assert [(one.pid, one.path) for one in race.lost] == [(os.getpid(), race.data)]


async def test_a_record_that_was_left_behind_is_replaced(tmp_path: Path) -> None:  # G2-2
    path = place_of(tmp_path, os.environ).record
    old = ServerRecord(
        token="old", pid=1, instance="dead", version="0", data_directory=str(tmp_path),
        started_at=1, host="127.0.0.1", port=1,
    )  # fmt: skip
    write_record(path, old)
    async with served(tmp_path) as server:
        assert read_record(path, tmp_path) == server.record
        assert server.record.token != "old"


async def test_in_the_end_the_record_of_another_server_stays(tmp_path: Path) -> None:  # G2-2
    path = place_of(tmp_path, os.environ).record
    async with served(tmp_path) as server:
        other = ServerRecord(
            token="t", pid=1, instance="other", version="0", data_directory=str(tmp_path),
            started_at=1, host="127.0.0.1", port=1,
        )  # fmt: skip
        write_record(path, other)
        await server.end()
    assert read_record(path, tmp_path) == other


async def test_a_port_of_a_stranger(tmp_path: Path) -> None:  # G2-4
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    os.makedirs(directory)
    async with listen(["127.0.0.1"], 0) as stranger:
        port = stranger.addresses[0][1]
        with pytest.raises(CannotListen, match=str(port)):
            await serve(ServeSettings(data=tmp_path, port=port), os.environ, Stop(), nobody)
        (directory / "server.yaml").write_bytes(f"port: {port}\n".encode())
        async with served(tmp_path, port=None) as server:
            assert server.record.port not in (None, port)


async def test_names_and_pages_that_are_allowed(tmp_path: Path) -> None:
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    os.makedirs(directory)
    (directory / "server.yaml").write_bytes(b"allowed_hosts: [box.example]\n")
    pages = ("https://page.example",)
    async with served(tmp_path, allowed_hosts=("other.example",), allowed_origins=pages) as server:
        port = server.record.port
        assert port is not None
        for host, origin, status in (
            (f"box.example:{port}", "", 200),
            (f"other.example:{port}", "https://page.example", 200),
            (f"third.example:{port}", "", 421),
            (f"box.example:{port}", "https://evil.example", 403),
        ):
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                answer = await ask_on(stream, host, "/healthz", more={"origin": origin})
                assert answer.status == status


async def test_a_start_that_fails_leaves_nothing(tmp_path: Path) -> None:
    files, living = open_files(), tasks()
    directory = Path(os.environ["XDG_CONFIG_HOME"]) / "vaala"
    os.makedirs(directory)
    (directory / "models.yaml").write_bytes(b"nonsense: true\n")
    with pytest.raises(ConfigError, match="nonsense"):
        await serve(ServeSettings(data=tmp_path / "d", port=0), os.environ, Stop(), nobody)
    os.unlink(directory / "models.yaml")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(DataUnusable, match="--data-dir"):
        await serve(ServeSettings(data=tmp_path / "file"), os.environ, Stop(), nobody)
    state = tmp_path / "state"
    state.write_bytes(b"no directory")
    elsewhere = {**os.environ, "XDG_STATE_HOME": str(state)}
    data = Path(os.environ["XDG_DATA_HOME"]) / "vaala"
    with pytest.raises(CannotPublish, match="cannot be written"):
        await serve(ServeSettings(data=data, port=0), elsewhere, Stop(), nobody)
    assert tasks() == living
    async with served(tmp_path / "d"):
        pass
    assert open_files() <= files + 1  # the event loop may keep one of its own


async def test_an_end_that_is_wished_for_early_comes_early(tmp_path: Path) -> None:
    stop = Stop()
    stop.ask("before it began")
    with trio.fail_after(20):
        await serve(ServeSettings(data=tmp_path, port=0), os.environ, stop, nobody)


async def test_a_turn_is_interrupted_and_kept(tmp_path: Path) -> None:  # H9-1
    script = tmp_path / "hang.yaml"
    script.write_bytes(HANG.encode())
    async with served(tmp_path / "d") as server, talk(server.record) as client:
        made = await client.ask(
            "conversation/create", directory=str(tmp_path), clientId="c1",
            settings={"model": f"scripted:{script}"},
        )  # fmt: skip
        await client.ask("conversation/subscribe", conversationId=made["id"])
        await client.say(made["id"], "go")
        await client.until("Thinking.")
        began = trio.current_time()
        await server.end()
        assert trio.current_time() - began < 5
    async with served(tmp_path / "d") as server, talk(server.record) as client:
        seen = await client.ask("conversation/subscribe", conversationId=made["id"])
        shown = json.dumps(seen["snapshot"])
        assert "Thinking." in shown
        assert '"shutdown"' in shown
        status = await client.ask("runtime/status")
        assert "turnId" not in json.dumps(status["conversations"])


async def test_the_log_shows_no_key_of_the_server_or_of_a_client(tmp_path: Path) -> None:  # H7-4
    environ = {**os.environ, "TEAM_KEY": "plain-words-of-the-server"}
    keys = {"A_KEY": "plain-words-of-a-client"}
    async with served(tmp_path, environ) as server, talk(server.record) as client:
        await client.ask("client/environment", environment={"directory": "/", "keys": keys})
        for secret in (keys["A_KEY"], environ["TEAM_KEY"]):
            logging.getLogger("vaala").warning("it was refused: %s, see there", secret)
    log = Path(os.environ["XDG_STATE_HOME"]) / "vaala" / "vaala.log"
    assert log.read_text().count("it was refused: ***, see there") == 2
    assert "plain-words" not in log.read_text()


async def test_a_connection_that_does_not_end_holds_up_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, release = trio.Event(), trio.Event()

    async def hang(keeper: Keeper) -> ConfigListResult:
        """Like a thread that waits for a dead disk: no cancel reaches it."""
        with trio.CancelScope(shield=True):
            hangs.set()
            await release.wait()
        raise AssertionError("nobody waits for the answer")

    monkeypatch.setattr(limits, "CONNECTIONS_END_S", 0.05)
    monkeypatch.setattr(Keeper, "list", hang)
    (tmp_path / "hang.yaml").write_bytes(HANG.encode())
    data = tmp_path / "data"
    async with served(data) as server, talk(server.record) as client:
        made = await client.ask(
            "conversation/create", directory=str(tmp_path),
            settings={"model": f"scripted:{tmp_path / 'hang.yaml'}"},
        )  # fmt: skip
        await client.ask("conversation/subscribe", conversationId=made["id"])
        await client.say(made["id"], "go")
        await client.until('"running"')
        await client.begin("config/list")
        await hangs.wait()
        server.stop.ask("the test ends")
        try:
            with trio.fail_after(20):
                await server.stop.wait_given_up()
            assert not server.ended.is_set()
            logs = (data / "conversations" / made["id"]).rglob("*.jsonl")
            assert any(b'"interrupted"' in log.read_bytes() for log in logs)
        finally:
            release.set()
        with trio.fail_after(20):
            await server.ended.wait()
