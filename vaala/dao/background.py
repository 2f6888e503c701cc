"""A nursery for work that belongs to a block and never outlives or breaks it."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import TypeVar

import trio

log = logging.getLogger(__name__)
T = TypeVar("T")


@asynccontextmanager
async def background() -> AsyncGenerator[trio.Nursery]:
    """Open a nursery that is cancelled when the block is left.

    What the block raises comes out as it is, not in a group: the tasks in the nursery are fenced.
    """
    failure: BaseException | None = None
    async with trio.open_nursery() as nursery:
        try:
            yield nursery
        except BaseException as error:
            # Raised again below, outside of the nursery, which would wrap it. A `Cancelled` finds
            # its scope from there as well: that scope is around both.
            failure = error
        nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def for_each(
    items: Iterable[T], work: Callable[[T], Awaitable[object]], *, at_once: int
) -> None:
    """Run ``work`` on every item, so many at once; the first error ends it and comes out bare."""
    failure: Exception | None = None
    left = iter(items)

    async def take(nursery: trio.Nursery) -> None:
        nonlocal failure
        for item in left:
            try:
                await work(item)
            except Exception as error:
                failure = failure or error
                nursery.cancel_scope.cancel()
                return

    async with trio.open_nursery() as nursery:
        for _ in range(at_once):
            nursery.start_soon(take, nursery)
    if failure is not None:
        raise failure


async def fenced(work: Callable[[], Awaitable[object]], what: str) -> None:
    """Run ``work``; an exception in it is logged with its traceback and ends nothing else."""
    try:
        await work()
    except Exception:
        log.exception("%s failed", what)
