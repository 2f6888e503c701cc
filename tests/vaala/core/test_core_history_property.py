"""Any log becomes a valid request, and folding it step by step is folding it from scratch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

from tests.vaala.core.chat import body_of, chat_model, complaints
from tests.vaala.core.random_log import RandomLog
from vaala.agent.context import ContextItem, context_of, governing
from vaala.agent.history import History, read_history
from vaala.models.chat.model import ChatModel
from vaala_protocol.items import Item

LOGS = 2_000


async def test_random_logs_become_valid_requests_and_fold_alike() -> None:
    model = chat_model()
    for seed in range(LOGS):
        await check_log(model, seed)


async def check_log(model: ChatModel, seed: int) -> None:
    random = Random(seed)
    log = RandomLog(random)
    live = History(model)
    closed: list[list[Item]] = []
    for number, step in enumerate(log.steps):
        shown = step[: random.randint(0, len(step))]
        body = body_of(live, shown)
        assert complaints(body) == [], f"seed {seed}, open step {number}"
        live.close(step)
        closed.append(step)
        if any(isinstance(item, ContextItem) for item in step):
            live = await folded(model, closed, random)
    body = body_of(live, [])
    assert complaints(body) == [], f"seed {seed}"
    read = await folded(model, log.steps, random)
    assert body_of(read, []) == body, f"seed {seed}"
    assert read.size_bytes == live.size_bytes


async def folded(model: ChatModel, steps: list[list[Item]], random: Random) -> History:
    """Fold from scratch: all that there is, or what is not left out, as a session does."""
    items = [item for step in steps for item in step]
    head = governing(items)
    keeps = () if head is None else head.keeps
    kept = [item for item in items if item.at in keeps]
    if head is not None and random.random() < 0.5:
        start = min(head.covers, head.at - 1) + 1
        steps = [[item for item in step if item.at >= start] for step in steps]
        items = [item for step in steps for item in step]
    context = context_of(items, kept)
    return await read_history(model, _pages(steps, random), ("no turn", 1), context)


async def _pages(steps: list[list[Item]], random: Random) -> AsyncIterator[list[Item]]:
    """Yield whole steps, one or more at a time, as a log gives them."""
    page: list[Item] = []
    before: tuple[str | None, int | None] | None = None
    for step in steps:
        if not step:
            continue
        key = (step[0].turn_id, step[0].step)
        if key == before or random.random() < 0.5:
            yield page
            page = []
        page += step
        before = key
    yield page
