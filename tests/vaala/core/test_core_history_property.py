"""Any log becomes a valid request, and folding it step by step is folding it from scratch."""

from __future__ import annotations

from collections.abc import AsyncIterator
from random import Random

from tests.vaala.core.chat import body_of, chat_model, complaints
from tests.vaala.core.random_log import RandomLog
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
    for number, step in enumerate(log.steps):
        shown = step[: random.randint(0, len(step))]
        body = body_of(live, shown)
        assert complaints(body) == [], f"seed {seed}, open step {number}"
        live.close(step)
    body = body_of(live, [])
    assert complaints(body) == [], f"seed {seed}"
    read = await read_history(model, _pages(log, random), "no turn")
    assert body_of(read, []) == body, f"seed {seed}"
    assert read.size_bytes == live.size_bytes


async def _pages(log: RandomLog, random: Random) -> AsyncIterator[list[Item]]:
    """Yield whole steps, one or more at a time, as a log gives them."""
    page: list[Item] = []
    before: tuple[str | None, int | None] | None = None
    for step in log.steps:
        if not step:
            continue
        key = (step[0].turn_id, step[0].step)
        if key == before or random.random() < 0.5:
            yield page
            page = []
        page += step
        before = key
    yield page
