"""Keys that are asked for when they are first needed: once, by one, and again when refused."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec import Struct

from vaala.models.base import Deadlines, ModelFailure
from vaala.models.http import Call, Http, open_http
from vaala.models.keys.late import LateKey
from vaala.models.keys.places import KEYRING_MISSING
from vaala.models.keys.source import KeyCommand, KeyFile, KeyringEntry, KeySource, NoKey
from vaala.models.limits import KEY_WAIT_S
from vaala.models.provider import Api, Provider
from vaala.models.secret import Secret
from vaala.testing import ChatServer, Reply, chat_server

KEY, NEWER = "first-key-0123456789", "newer-key-0123456789"
SOURCE = KeyringEntry("vaala", "me")


def script(*lines: str) -> KeyCommand:
    return KeyCommand((sys.executable, "-c", "\n".join(("import os, sys", *lines))))


class Rig(Struct):
    server: ChatServer
    http: Http
    learned: list[Secret]

    async def ask(self, source: KeySource, api: Api = "chat") -> int:
        """Return the status of the answer."""
        provider = Provider("team", self.server.base_url, api=api, key_source=source)
        origin = self.http.origin(provider)
        call = Call(self.server.base_url, {}, None, Deadlines(), origin, provider)
        async with self.http.exchange(call) as answer:
            await answer.read_all(1000)
            return answer.status

    async def fails(self, source: KeySource) -> str:
        with pytest.raises(ModelFailure) as caught:
            await self.ask(source)
        assert (caught.value.kind, caught.value.retryable) == ("auth", False)
        return caught.value.message

    @property
    def keys(self) -> list[str]:
        return [one.headers["authorization"] for one in self.server.requests]


@asynccontextmanager
async def rig(*statuses: int) -> AsyncGenerator[Rig]:
    learned: list[Secret] = []
    async with chat_server() as server, open_http(os.environ, learn=learned.extend) as http:
        server.reply(*(Reply((b"refused",), status=status) for status in statuses))
        server.answer(lambda _: Reply((b"fine",)))
        yield Rig(server, http, learned)


async def test_a_file_is_read_when_it_is_first_needed(tmp_path: Path) -> None:
    file = tmp_path / "key"
    async with rig() as r:
        assert str(file) in await r.fails(KeyFile(file))
        file.write_text(f"{KEY}\n")
        assert await r.ask(KeyFile(file)) == 200
        file.unlink()
        assert await r.ask(KeyFile(file)) == 200
        assert r.keys == [f"Bearer {KEY}"] * 2
        assert r.learned == [Secret(KEY)]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"\n", "it is empty"), (b"a\nb", "one line of ASCII"), ("schlüssel".encode(), "one line")],
)
async def test_a_file_that_holds_no_key(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "key").write_bytes(content)
    async with rig() as r:
        assert said in await r.fails(KeyFile(tmp_path / "key"))
        assert r.server.requests == []


async def test_a_pipe_is_no_file_of_a_key(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    async with rig() as r:
        assert "is not a regular file" in await r.fails(KeyFile(tmp_path / "pipe"))


async def test_the_first_line_of_a_command_is_the_key() -> None:
    async with rig() as r:
        assert await r.ask(script(f"print('{KEY}'); print('user: me')")) == 200
        assert r.keys == [f"Bearer {KEY}"]


@pytest.mark.parametrize(
    ("api", "header"), [("anthropic", "x-api-key"), ("gemini", "x-goog-api-key")]
)
async def test_each_format_has_its_header(api: Api, header: str) -> None:
    async with rig() as r:
        assert await r.ask(script(f"print('{KEY}')"), api) == 200
        assert r.server.requests[0].headers[header] == KEY


async def test_a_command_has_no_other_keys_no_input_and_no_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTHER_KEY", "other-key-0123456789")
    monkeypatch.setenv("KEPT", "1")
    lines = (
        "assert 'OTHER_KEY' not in os.environ and os.environ['KEPT'] == '1'",
        "assert sys.stdin.read() == '' and os.getsid(0) == os.getpid()",
        f"print('{KEY}')",
    )
    source = KeyCommand(script(*lines).argv, withheld=("OTHER_KEY",))
    async with rig() as r:
        assert await r.ask(source) == 200


async def test_a_command_that_fails_says_why_without_the_key() -> None:
    lines = (f"print('{KEY}')", f"sys.exit('not signed in, last was {KEY}')")
    async with rig() as r:
        message = await r.fails(script(*lines))
    assert message.startswith(f"team: the command {sys.executable} ended with 1: not signed in")
    assert KEY not in message


async def test_a_command_that_is_not_there() -> None:
    async with rig() as r:
        assert "the command no-such-command cannot be started" in await r.fails(
            KeyCommand(("no-such-command", "show"))
        )


async def test_a_command_that_prints_very_much_is_read_to_its_end() -> None:
    lines = ("for _ in range(40): os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)",)
    async with rig() as r:
        assert "one line of ASCII" in await r.fails(script(*lines))


async def test_what_a_command_leaves_running_holds_up_nothing() -> None:
    lines = ("os.fork() or (os.setsid(), __import__('time').sleep(15))", f"print('{KEY}')")
    async with rig() as r:
        with trio.fail_after(10):
            assert await r.ask(script(*lines)) == 200


async def test_a_cancel_kills_the_command_and_what_it_started(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    lines = (
        "held = open(sys.argv[1], 'w')",
        "if os.fork(): print('started', file=held, flush=True)",
        "__import__('time').sleep(600)",
    )
    source = KeyCommand((*script(*lines).argv, str(pipe)))
    async with rig() as r, trio.open_nursery() as nursery:
        nursery.start_soon(r.ask, source)
        held = await trio.to_thread.run_sync(pipe.open)
        assert await trio.to_thread.run_sync(held.readline) == "started\n"
        nursery.cancel_scope.cancel()
    with held, trio.fail_after(30):
        # It ends when no process holds the other side any more.
        assert await trio.to_thread.run_sync(held.read, abandon_on_cancel=True) == ""


async def test_the_keyring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keyring.py").write_text(
        "def get_password(service, user):\n"
        "    if service == 'locked': raise RuntimeError('nobody unlocks it')\n"
        f"    return '{KEY}' if (service, user) == ('vaala', 'me') else None\n"
    )
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    async with rig() as r:
        assert await r.ask(SOURCE) == 200
        assert r.keys == [f"Bearer {KEY}"]
        message = await r.fails(KeyringEntry("vaala", "you"))
        assert message.endswith("the keyring (vaala/you) has no such entry: keyring set vaala you")
        assert "nobody unlocks it" in await r.fails(KeyringEntry("locked", "me"))
    monkeypatch.delitem(sys.modules, "keyring")


async def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    async with rig() as r:
        assert await r.fails(SOURCE) == f"team: {KEYRING_MISSING}"
    assert "vaala[keyring]" in KEYRING_MISSING


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_has_changed_is_had_again(tmp_path: Path, status: int) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    async with rig(200, status) as r:
        assert await r.ask(KeyFile(file)) == 200
        file.write_text(NEWER)
        assert await r.ask(KeyFile(file)) == 200
        assert r.keys == [f"Bearer {KEY}", f"Bearer {KEY}", f"Bearer {NEWER}"]
        assert r.learned == [Secret(KEY), Secret(NEWER)]


async def test_a_key_that_is_refused_again_is_no_reason_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(KEY)
    async with rig(401) as r:
        assert await r.ask(KeyFile(file)) == 401
        assert len(r.keys) == 1
    async with rig(200, 401, 401) as r:
        assert await r.ask(KeyFile(file)) == 200
        file.write_text(NEWER)
        assert await r.ask(KeyFile(file)) == 401
        assert len(r.keys) == 3


class Source:
    """Gives the answers that it is told, each when it may; None: never."""

    def __init__(self, *answers: str | NoKey | None) -> None:
        self.asked = 0
        self.may = trio.Event()
        self._answers: Iterator[str | NoKey | None] = iter(answers)

    async def fetch(self, _: KeySource) -> str:
        self.asked += 1
        await self.may.wait()
        answer = next(self._answers)
        if isinstance(answer, NoKey):
            raise answer
        if answer is None:
            await trio.sleep_forever()
        assert answer is not None
        return answer

    def key(self) -> LateKey:
        return LateKey(SOURCE, self.fetch, lambda _: None)


async def _gather(count: int, ask: Callable[[], Awaitable[Secret]], source: Source) -> list[str]:
    """Let so many ask at once; return what each of them got, or why it got nothing."""
    got: list[str] = []

    async def one() -> None:
        try:
            got.append((await ask()).reveal())
        except NoKey as error:
            got.append(str(error))

    async with trio.open_nursery() as nursery:
        for _ in range(count):
            nursery.start_soon(one)
        await trio.testing.wait_all_tasks_blocked()
        source.may.set()
    return got


async def test_many_who_need_a_key_ask_once() -> None:
    source = Source(KEY)
    assert await _gather(20, source.key().get, source) == [KEY] * 20
    assert source.asked == 1


@pytest.mark.parametrize("second", [KEY, NEWER])
async def test_many_who_are_refused_ask_once(second: str) -> None:
    source = Source(KEY, second)
    late = source.key()
    source.may.set()
    refused = await late.get()
    source.may = trio.Event()
    assert await _gather(20, partial(late.renewed, refused), source) == [second] * 20
    assert source.asked == 2


async def test_a_failure_is_that_of_all_who_waited_and_of_no_other() -> None:
    source = Source(NoKey("it is locked"), KEY)
    late = source.key()
    assert await _gather(20, late.get, source) == ["it is locked"] * 20
    assert (await late.get()).reveal() == KEY
    assert source.asked == 2


async def test_whoever_waits_asks_anew_when_the_first_is_cancelled() -> None:
    source = Source(None, KEY)
    late = source.key()
    source.may.set()
    got: list[Secret] = []

    async def wait() -> None:
        got.append(await late.get())

    scope = trio.CancelScope()

    async def give_up() -> None:
        with scope:
            await late.get()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(wait)
        await trio.testing.wait_all_tasks_blocked()
        scope.cancel()
    assert got == [Secret(KEY)]


async def test_a_source_has_so_long(autojump_clock: trio.testing.MockClock) -> None:
    source = Source(None)
    source.may.set()
    with pytest.raises(NoKey, match=f"gave no key within {KEY_WAIT_S:g} s"):
        await source.key().get()
    assert trio.current_time() == pytest.approx(KEY_WAIT_S)
