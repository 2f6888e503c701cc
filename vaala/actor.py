"""Actors: one task owns a piece of state; everyone else reaches it by message.

An actor has two queues. *Requests* come from outside through `Actor.ask`: bounded, one deadline
over queue and work, always answered. *Reports* come from the actor's own children through
`Actor.report` and `Actor.deliver`: never refused, bounded by the number of children, and served
first. A loop never awaits its children, so a child may wait for the actor that spawned it; an
actor never asks upward.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Generic, TypeVar, final

import outcome
import trio

from vaala import limits
from vaala_protocol.errors import Overloaded, Refused, Stopping, TimedOut

R = TypeVar("R")
C = TypeVar("C")

_waiting: ContextVar[tuple[Actor, ...]] = ContextVar("vaala_waiting_actors", default=())


def call_outside(fn: Callable[..., object], *args: Any) -> None:
    """Call what does not belong to the actor that is at work, such as a listener of a client.

    Tasks that it starts are nobody's children: what they ask for is not for this actor's sake.
    """
    token = _waiting.set(())
    try:
        fn(*args)
    finally:
        _waiting.reset(token)


class WouldDeadlock(RuntimeError):
    """The actor asked is, up the chain, waiting for this very answer: a bug in the caller."""


class Command(Generic[R]):
    """A message answered with an R; a mixin of frozen structs."""

    __slots__ = ()


@final
class _Message:
    """A command on its way, with the place for its answer."""

    __slots__ = ("_answered", "_result", "chain", "command")

    def __init__(self, command: Command[Any], chain: tuple[Actor, ...]) -> None:
        self.command = command
        self.chain = chain
        self._answered = trio.Event()
        self._result: outcome.Outcome[Any] | None = None

    def answer(self, result: outcome.Outcome[Any]) -> None:
        if self._result is None:
            self._result = result
            self._answered.set()

    async def wait(self) -> Any:
        await self._answered.wait()
        assert self._result is not None
        return self._result.unwrap()


class Actor:
    """Subclasses implement `handle`, and `opened`/`closing` for what surrounds the loop.

    `serve` runs the actor: it returns after `stop`, and raises what a handler raised: a bug, which
    the fence around it contains (`vaala.table`).
    """

    def __init__(self) -> None:
        self._requests: deque[_Message] = deque()
        self._reports: deque[_Message] = deque()
        self._wake = trio.Event()
        self._stopping = False
        self._childless = False
        self._ended = False
        self._stopped = trio.Event()
        self._closing = trio.Event()
        self._deadline = -math.inf
        self._loop_scope = trio.CancelScope(shield=True)
        self._nursery: trio.Nursery | None = None

    @property
    def stopping(self) -> bool:
        return self._stopping

    async def ask(self, command: Command[R], *, timeout: float = limits.ASK_TIMEOUT_S) -> R:
        """Send a request and wait for its answer.

        Raises `Overloaded` when the queue is full, `TimedOut`, `Stopping`, or the `Refused` that
        the handler raised. Cancel: a request that has not begun is dropped; one that has begun is
        finished, and its answer is lost.
        """
        chain = _waiting.get()
        if self in chain:
            raise WouldDeadlock(f"{command!r} would wait for its own answer")
        if self._stopping:
            raise Stopping(f"{self}: it is closing")
        if len(self._requests) >= limits.INBOX_REQUESTS_MAX:
            raise Overloaded(f"{self}: {len(self._requests)} requests wait already; try again")
        message = _Message(command, chain)
        self._requests.append(message)
        self._wake.set()
        try:
            with trio.fail_after(timeout):
                return await message.wait()  # type: ignore[no-any-return] # R by construction
        except trio.TooSlowError:
            raise TimedOut(f"{self}: no answer to {_name(command)} in {timeout:g} s") from None
        finally:
            # Only a request that has not begun is still there.
            with suppress(ValueError):
                self._requests.remove(message)

    def report(self, command: Command[Any]) -> None:
        """Send a message from a child; nobody waits for its answer. Never refused."""
        self._enqueue(command)

    async def deliver(self, command: Command[R]) -> R:
        """Send a message from a child and wait for its answer, for as long as it takes.

        Cancel: the message stays and is handled all the same; only the answer is lost.
        """
        return await self._enqueue(command).wait()  # type: ignore[no-any-return] # R, as above

    def _enqueue(self, command: Command[Any]) -> _Message:
        message = _Message(command, ())
        if self._ended:
            message.answer(outcome.Error(Stopping(f"{self}: it has ended")))
        else:
            self._reports.append(message)
            self._wake.set()
        return message

    def more_reports(self, kind: type[C]) -> list[tuple[C, Callable[[outcome.Outcome[Any]], None]]]:
        """Take the reports of one kind that wait next, each with the way to answer it.

        For a handler that serves several with one piece of work; the caller answers them all.
        """
        taken: list[tuple[C, Callable[[outcome.Outcome[Any]], None]]] = []
        while self._reports and isinstance(command := self._reports[0].command, kind):
            taken.append((command, self._reports.popleft().answer))
        return taken

    def spawn(self, fn: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Start a child task in the actor's nursery; it may deliver to this actor.

        Nothing is started once the actor's children have ended: a last report may ask for more
        work, which would be cancelled before it began.
        """
        token = _waiting.set(())
        # The nursery raises when it has closed, before it calls ``fn``.
        with suppress(RuntimeError):
            self.children.start_soon(fn, *args)
        _waiting.reset(token)

    @property
    def children(self) -> trio.Nursery:
        """The nursery of the actor's children; there only while `serve` runs."""
        assert self._nursery is not None, f"{self} does not run"
        return self._nursery

    def stop(self) -> None:
        """Refuse new requests, run `closing`, serve reports until the children have ended."""
        self._stopping = True
        self._stopped.set()
        self._wake.set()

    async def serve(self, ready: Callable[[], None] = lambda: None) -> None:
        """Run the actor until `stop`, a crash of a handler or child, or cancellation.

        ``ready`` is called when `opened` has returned and messages are served.

        However it ends, the children are ended first and their reports served meanwhile: a child
        that cleans up can still have its last words written down. Only after a crash of a handler
        is nobody left to serve them; then every message is answered with `Stopping`.
        """
        try:
            async with trio.open_nursery() as outer:
                try:
                    async with trio.open_nursery() as self._nursery:
                        await self._live(outer, self._nursery, ready)
                finally:
                    self._leave()
        finally:
            self._abandon()
            self._nursery = None

    async def _live(
        self, outer: trio.Nursery, children: trio.Nursery, ready: Callable[[], None]
    ) -> None:
        try:
            await self.opened()
        except BaseException:
            # No loop runs yet: a child that waits for an answer would never get one.
            self._abandon()
            raise
        outer.start_soon(self._loop)
        ready()
        try:
            await self._stopped.wait()
        finally:
            self.stop()
            self._deadline = trio.current_time() + limits.SHUTDOWN_S
            children.cancel_scope.deadline = self._deadline
            # What has begun may still start a child, which `closing` then ends with the others.
            with trio.CancelScope(deadline=self._deadline, shield=True):
                await self._closing.wait()

    def _leave(self) -> None:
        """The children have ended: let the loop serve what they have sent, and return.

        It has what is left of their deadline, so that a cancel does not tear its last append.
        """
        self._stopping = self._childless = True
        self._wake.set()
        soon = trio.current_time() + limits.LAST_WORDS_S
        self._loop_scope.deadline = max(self._deadline, soon)

    async def opened(self) -> None:
        """Called inside the nursery before the first message."""

    async def closing(self) -> None:
        """Called once the actor is stopping: ask the children to end. Must not wait for them.

        Not called after a crash of a handler, or when `opened` did not return.
        """

    async def handle(self, command: Any) -> Any:
        raise NotImplementedError

    async def _loop(self) -> None:
        """Serve messages. Shielded: ended by `serve` alone, after the children."""
        try:
            with self._loop_scope:
                while not self._stopping:
                    await self._next()
                await self.closing()
                self._closing.set()
                while self._reports or not self._childless:
                    await self._next()
        finally:
            self._closing.set()
            self._abandon()

    async def _next(self) -> None:
        if self._reports:
            await self._handle(self._reports.popleft())
        elif self._requests:
            message = self._requests.popleft()
            if self._stopping:
                message.answer(outcome.Error(Stopping(f"{self}: it is closing")))
            else:
                await self._handle(message)
        else:
            self._wake = trio.Event()
            await self._wake.wait()

    async def _handle(self, message: _Message) -> None:
        token = _waiting.set((*message.chain, self))
        try:
            result = await self.handle(message.command)
        except Refused as refused:
            message.answer(outcome.Error(refused))
        except trio.Cancelled:
            message.answer(outcome.Error(self._no_answer()))
            raise
        except BaseException as error:
            message.answer(outcome.Error(Stopping(f"{self} crashed: {error!r}")))
            raise
        else:
            message.answer(outcome.Value(result))
        finally:
            _waiting.reset(token)

    def _abandon(self) -> None:
        self._stopping = self._ended = True
        for message in (*self._reports, *self._requests):
            message.answer(outcome.Error(self._no_answer()))
        self._reports.clear()
        self._requests.clear()

    def _no_answer(self) -> Stopping:
        return Stopping(f"{self}: it ended before it answered")


def _name(command: object) -> str:
    return type(command).__name__
