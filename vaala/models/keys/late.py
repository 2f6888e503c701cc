"""Keys that are had when they are first needed, and kept in memory alone."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

import trio

from vaala.models.keys.command import run_key_command
from vaala.models.keys.places import ask_keyring, read_key_file
from vaala.models.keys.source import KeyCommand, KeyFile, KeyringEntry, KeySource, NoKey
from vaala.models.limits import CLIENTS_MAX, KEY_CHARS_MAX, KEY_THREADS_MAX, KEY_WAIT_S
from vaala.models.secret import Secret

Learn: TypeAlias = Callable[[Iterable[Secret]], None]


class LateKeys:
    """The keys of all sources that were asked for."""

    def __init__(self, environ: Mapping[str, str], learn: Learn) -> None:
        """``environ`` is that of commands; ``learn`` is told each key, so that no log shows it."""
        self._environ = environ
        self._learn = learn
        # Apart from other threads: one that a dead file system or a keyring holds up never ends.
        self._threads = trio.CapacityLimiter(KEY_THREADS_MAX)
        self._held: dict[KeySource, LateKey] = {}
        """The one that was used last stands last."""

    def of(self, source: KeySource) -> LateKey:
        """Return the one key of a source; nobody is asked for it yet."""
        held = self._held.pop(source, None)
        if held is None:
            held = LateKey(source, self._fetch, self._learn)
        self._held[source] = held
        if len(self._held) > CLIENTS_MAX:
            del self._held[next(iter(self._held))]
        return held

    async def _fetch(self, source: KeySource) -> str:
        match source:
            case KeyCommand():
                return await run_key_command(source, self._environ)
            case KeyFile():
                read = partial(read_key_file, source)
            case KeyringEntry():
                read = partial(ask_keyring, source)
        return await trio.to_thread.run_sync(read, abandon_on_cancel=True, limiter=self._threads)


class LateKey:
    """The key of one source.

    One task asks for it while all others wait for what comes of that. A failure is that of all who
    wait, and is not kept: whoever comes later asks anew.
    """

    def __init__(
        self, source: KeySource, fetch: Callable[[KeySource], Awaitable[str]], learn: Learn
    ) -> None:
        self._source = source
        self._fetch = fetch
        self._learn = learn
        self._lock = trio.Lock()
        self._answers = 0
        """How often the source gave a key or said why it does not."""
        self._failed: str | None = None
        """Why the last answer was no key."""
        self._key: Secret | None = None
        self.known: tuple[Secret, ...] = ()
        """The key and the one before it: neither may be shown."""

    async def get(self) -> Secret:
        """Return the key; raises `NoKey`.

        Asking for it takes at most `KEY_WAIT_S`. Cancel: a command is killed with its process
        group; the next task that waits asks anew.
        """
        return self._key or await self._ask(None)

    async def renewed(self, refused: Secret) -> Secret:
        """Return the key after a server refused ``refused``: the source is asked once more.

        Where another task did that meanwhile, this is what it got. It is equal to ``refused`` when
        the source gives that again. Raises, and is cancelled, as `get`.
        """
        return await self._ask(refused)

    async def _ask(self, refused: Secret | None) -> Secret:
        answers = self._answers
        async with self._lock:
            if self._key is not None and self._key is not refused:
                return self._key
            if self._answers == answers:
                await self._update()
            if self._failed is not None or self._key is None:
                raise NoKey(self._failed)
            return self._key

    async def _update(self) -> None:
        try:
            key, self._failed = Secret(await self._fetched()), None
        except NoKey as failed:
            self._failed = str(failed)
        else:
            self._key = key
            self.known = (*self.known[-1:], key)
            self._learn((key,))
        self._answers += 1

    async def _fetched(self) -> str:
        with trio.move_on_after(KEY_WAIT_S):
            text = await self._fetch(self._source)
            if not text:
                raise NoKey(f"{self._source} gives no key: it is empty")
            if len(text) > KEY_CHARS_MAX or not (text.isascii() and text.isprintable()):
                raise NoKey(f"{self._source} gives no key, which is one line of ASCII")
            return text
        raise NoKey(f"{self._source} gave no key within {KEY_WAIT_S:g} s")
