"""Titles made by a model: once, beside the first turn, and never in the way of anything."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing
from msgspec.structs import replace

import vaala
from vaala import limits
from vaala.changes import now_ms
from vaala.handle import ConversationHandle
from vaala.models.base import (
    Finish,
    ModelEvent,
    ModelFailure,
    ModelRequest,
    TextDelta,
    UsageReport,
)
from vaala.models.catalogue.facts import Known
from vaala.models.options import Defaults
from vaala.runtime import Runtime
from vaala.testing.function_model import FunctionModel, answer
from vaala.titles import clean_title
from vaala.usage import conversation_usage
from vaala_protocol.events import ConversationChanged, Frame
from vaala_protocol.settings import Usage

PROMPT = "Why does the parser fail?"


class Titler(FunctionModel):
    """Answers with these words; before that it may hang, or fail after that."""

    def __init__(self, words: str = "Parser failure", failure: str = "") -> None:
        super().__init__(self._answer, name="titler")
        self.seen: list[ModelRequest] = []
        self.go = trio.Event()
        self.go.set()
        self.cancelled = False
        self._words = words
        self._failure = failure

    @property
    def defaults(self) -> Defaults:
        return Defaults("low", {"temperature": 0.5, "max_output_tokens": 100_000})

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
        self.seen.append(request)
        yield UsageReport(Usage(input=7, output=2))
        try:
            await self.go.wait()
        except trio.Cancelled:
            self.cancelled = True
            raise
        if self._failure:
            raise ModelFailure("overloaded", self._failure, retryable=True)
        yield TextDelta(self._words)
        yield Finish("stop")


async def _talks(_: ModelRequest) -> AsyncGenerator[ModelEvent]:
    for event in answer("Fine."):
        yield event


@asynccontextmanager
async def titled(
    titler: Titler, store: vaala.Store | None = None, *, name: str = "titler"
) -> AsyncGenerator[Runtime]:
    models = [FunctionModel(_talks, name="main"), titler]
    async with vaala.open_runtime(models=models, storage=store) as runtime:
        runtime.redefine(replace(runtime.definitions, titles=name))
        yield runtime


async def started(runtime: Runtime, directory: Path, title: str = "") -> ConversationHandle:
    return await runtime.create_conversation(directory=str(directory), title=title)


async def settled(talk: ConversationHandle) -> str:
    """Return the title when nothing goes on any more."""
    await trio.testing.wait_all_tasks_blocked(0.01)
    return (await talk.info()).title


async def used(runtime: Runtime, conversation_id: str) -> dict[str, Usage]:
    spent = await conversation_usage(runtime.store, conversation_id, lambda _: Known())
    return {one.model: one.usage for one in spent.spent.models}


async def test_a_new_conversation_gets_a_title(tmp_path: Path) -> None:
    titler = Titler('"Parser failure."\nMore.')
    async with titled(titler) as runtime:
        talk = await started(runtime, tmp_path)
        async with talk.subscribe() as updates:
            await anext(updates)
            await talk.run(PROMPT)
            assert await settled(talk) == "Parser failure."
            told: list[str] = []
            while (update := updates.next_nowait()) is not None:
                if isinstance(update, Frame) and isinstance(update.event, ConversationChanged):
                    told.append(update.event.conversation.title)
        assert told[-1] == "Parser failure."
        row = await runtime.store.get(talk.id)
        assert row is not None
        assert row.info.title == "Parser failure."
        assert await used(runtime, talk.id) == {
            "main": Usage(input=1, output=1),
            "titler": Usage(input=7, output=2),
        }
        await talk.run("And now?")
    (request,) = titler.seen
    assert request.tools == ()
    assert PROMPT in titler.encode(request.messages).decode()
    assert (request.effort, request.options) == ("low", {"temperature": 0.5})
    assert request.output_tokens_max == limits.TITLE_TOKENS_MAX


async def test_a_turn_does_not_wait_for_its_title(tmp_path: Path) -> None:
    titler = Titler()
    titler.go = trio.Event()
    async with titled(titler) as runtime:
        talk = await started(runtime, tmp_path)
        assert (await talk.run(PROMPT)).text == "Fine."
        assert await settled(talk) == PROMPT
        titler.go.set()
        assert await settled(talk) == "Parser failure"


async def test_a_conversation_that_closes_ends_the_call_and_counts_it(tmp_path: Path) -> None:
    titler = Titler()
    titler.go = trio.Event()
    async with vaala.open_store(tmp_path / "data") as store:
        async with titled(titler, store) as runtime:
            talk = await started(runtime, tmp_path)
            await talk.run(PROMPT)
        assert titler.cancelled
        async with titled(Titler(), store) as runtime:
            again = await runtime.open_conversation(talk.id)
            assert (await again.info()).title == PROMPT
            assert (await used(runtime, talk.id))["titler"] == Usage(input=7, output=2)


async def test_a_title_of_a_person_is_never_replaced(tmp_path: Path) -> None:
    titler = Titler()
    async with titled(titler) as runtime:
        given = await started(runtime, tmp_path, "Mine")
        await given.run(PROMPT)
        assert await settled(given) == "Mine"
        assert titler.seen == []
        titler.go = trio.Event()
        meanwhile = await started(runtime, tmp_path)
        await meanwhile.run(PROMPT)
        await meanwhile.update(title="Also mine")
        titler.go.set()
        assert await settled(meanwhile) == "Also mine"


@pytest.mark.parametrize(
    ("titler", "name", "words"),
    [
        (Titler(failure="the server is overloaded"), "titler", "the server is overloaded"),
        (Titler(" \n\t"), "titler", "the model wrote no title"),
        (Titler("**"), "titler", "the model wrote no title"),
        (Titler("x" * (limits.TITLE_ANSWER_BYTES_MAX + 1)), "titler", "the title is too long"),
        (Titler(), "nobody", "no model 'nobody'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_a_title_that_cannot_be_had_is_told_to_the_log_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, titler: Titler, name: str, words: str
) -> None:
    caplog.set_level(logging.WARNING, "vaala.titles")
    async with titled(titler, name=name) as runtime:
        talk = await started(runtime, tmp_path)
        assert (await talk.run(PROMPT)).turn.state == "completed"
        assert await settled(talk) == PROMPT
        await talk.run("Again.")
        await settled(talk)
        assert len(titler.seen) <= 1, "one try"
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert words in caplog.text


async def test_a_title_takes_no_longer_than_its_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, autojump_clock: trio.testing.MockClock
) -> None:
    titler = Titler()
    titler.go = trio.Event()
    async with titled(titler) as runtime:
        talk = await started(runtime, tmp_path)
        await talk.run(PROMPT)
        await trio.sleep(limits.TITLE_S_MAX + 1)
        assert titler.cancelled
        assert (await talk.info()).title == PROMPT
    assert "took more than 30 s" in caplog.text


async def test_copies_and_archives_keep_a_title(tmp_path: Path) -> None:
    # What was used in the millisecond of a copy would count as its own.
    opened = vaala.open_store(tmp_path / "data", clock=lambda: now_ms() + 1_000)
    async with opened as store, titled(Titler(), store) as runtime:
        talk = await started(runtime, tmp_path)
        await talk.run(PROMPT)
        assert await settled(talk) == "Parser failure"
        fork = await runtime.fork_conversation(talk.id)
        await runtime.export_conversation(talk.id, str(tmp_path / "archive"))
        imported = await runtime.import_conversation(str(tmp_path / "archive"))
        assert await used(runtime, fork.id) == {}
        for copy in (fork, imported):
            assert (await copy.info()).title == "Parser failure"
        await imported.update(title="Mine", directory=str(tmp_path))
        assert (await imported.info()).title == "Mine"


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Fix the parser", "Fix the parser"),
        ("\n\n## **Fix the parser**\n\nIt fails.", "Fix the parser"),
        ('Title: "Fix the parser"', "Fix the parser"),
        ("`Fix`\tthe \x1b[31mparser\x07", "Fix` the [31mparser"),
        ("Fix\u202e the\u200b parser", "Fix the parser"),
        ("x" * 200, "x" * (limits.TITLE_CHARS_MAX - 1) + "…"),
        ("Привет 🦊", "Привет 🦊"),
        ('""', ""),
        ("Title:", ""),
    ],
)
def test_a_title_is_one_clean_line(text: str, title: str) -> None:
    assert clean_title(text) == title
    assert clean_title(title) == title
