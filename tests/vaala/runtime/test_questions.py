"""Questions of an agent: items in every snapshot, answered by id, once, by whoever comes first."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from random import Random

import pytest
import trio
import trio.testing

from tests.vaala.runtime.driving import calls, idle, is_item, snapshot, until
from tests.vaala.runtime.worlds import World, crashing, kinds, run_seeds, settle
from vaala.handle import ConversationHandle
from vaala.models.base import ModelEvent, ModelRequest
from vaala.stream import Subscription
from vaala.testing.function_model import FunctionModel, answer, newest
from vaala.tools.base import ToolContext
from vaala_protocol.content import text_of
from vaala_protocol.errors import BadRequest, NotPending
from vaala_protocol.events import Frame, ItemChanged
from vaala_protocol.items import Question, ToolCall

ASK = ("ask_user", {"question": "Which colour?\nTake your time.", "choices": ["red", "blue"]})


async def respond(request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    """Ask, and repeat the answer; ``agents`` starts two that ask."""
    said = newest(request)
    if said.results and said.prompt != "agents":
        events = answer(said.results[-1])
    elif said.results:
        events = answer("started")
    elif said.prompt == "agents":
        events = answer("", ("spawn_agent", {"task": "ask"}), ("spawn_agent", {"task": "ask"}))
    elif said.prompt == "twice":
        events = answer("", ASK, ASK)
    elif said.prompt == "ask":
        events = answer("", ASK)
    elif said.prompt == "hurry":
        events = answer("", ("hurry", {}), ("exec_command", {"command": "sleep"}))
    else:
        events = answer("fine")
    for event in events:
        yield event


def world() -> World:
    return World(FunctionModel(respond))


async def asked(updates: Subscription) -> Question:
    update = await until(updates, is_item(Question, state="pending"))
    assert isinstance(update, Frame)
    assert isinstance(update.event, ItemChanged)
    assert isinstance(update.event.item, Question)
    return update.event.item


async def result_of(talk: ConversationHandle) -> str:
    (call,) = await calls(talk)
    assert call.state == "done"
    return text_of(call.result)


async def test_an_answer_is_the_result_of_the_call(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("ask")
        question = await asked(updates)
        assert question.text == "Which colour?\nTake your time."
        assert question.choices == ("red", "blue")
        await settle(3600)
        seen = await snapshot(talk)
        assert seen.conversation.status == "waitingAnswer"
        (session,) = seen.sessions
        assert [item for item in session.items if isinstance(item, Question)] == [question]
        assert ("you", "answer Which colour?") in [
            (wait.subject, wait.reason) for wait in session.waits
        ]
        await talk.answer_question(question.id, "green, please", by="Ann")
        await idle(talk)
        assert await result_of(talk) == "green, please"
        (done,) = await kinds(talk, Question)
        assert (done.state, done.answer, done.answered_by) == ("answered", "green, please", "Ann")
        assert (await snapshot(talk)).conversation.status == "idle"


async def test_a_person_need_not_answer(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("ask")
        question = await asked(updates)
        await talk.answer_question(question.id, None, by="Ann")
        await idle(talk)
        assert "does not want to answer" in await result_of(talk)
        (done,) = await kinds(talk, Question)
        assert (done.state, done.answer, done.answered_by) == ("answered", None, "Ann")


async def hurry(context: ToolContext) -> str:
    """Ask, and give up after a while."""
    with trio.move_on_after(60):
        await context.ask("Quick!", ())
        return "answered"
    return "gave up"


async def test_a_question_that_its_call_gives_up_is_withdrawn_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """Not only when its turn ends: nobody is asked for what nobody waits for."""
    here = World(FunctionModel(respond), tools=[hurry])
    async with here.talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("hurry")
        question = await asked(updates)
        await settle(61)
        (done,) = await kinds(talk, Question)
        assert (done.state, done.answer) == ("withdrawn", None)
        seen = await snapshot(talk)
        assert seen.conversation.status == "running"
        with pytest.raises(NotPending, match="settled before: withdrawn"):
            await talk.answer_question(question.id, "late")
        await talk.interrupt()
        await settle(1)
        assert (await snapshot(talk)).conversation.status == "idle"


def test_an_answer_and_the_end_of_the_wait_race_and_one_wins() -> None:
    async def story(random: Random) -> None:
        here = World(FunctionModel(respond), tools=[hurry])
        async with here.talk() as (_, talk), talk.subscribe() as updates:
            await talk.send("hurry")
            question = await asked(updates)
            answered = True
            await trio.sleep(60)
            for _ in range(random.randrange(6)):
                await trio.lowlevel.checkpoint()
            try:
                await talk.answer_question(question.id, "now")
            except NotPending:
                answered = False
            await settle(1)
            (done,) = await kinds(talk, Question)
            assert done.state == ("answered" if answered else "withdrawn")

    run_seeds(story, 40)


async def test_a_question_names_its_call(autojump_clock: trio.testing.MockClock) -> None:
    async with world().talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("ask")
        question = await asked(updates)
        assert [question.tool_call_id] == [call.id for call in await calls(talk)]


async def test_what_cannot_be_stored_is_refused_and_the_question_stays(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("ask")
        question = await asked(updates)
        with pytest.raises(BadRequest, match="the answer would be"):
            await talk.answer_question(question.id, "x" * 20_000)
        await talk.answer_question(question.id, "\ud800\0")
        await idle(talk)
        (done,) = await kinds(talk, Question)
        assert done.answer == "\ufffd\ufffd"


def test_answers_race_and_one_wins() -> None:
    """H3-2, for questions: at any moment, also right when it becomes visible (H3-5)."""

    async def story(random: Random) -> None:
        async with world().talk() as (_, talk), talk.subscribe() as updates:
            await talk.send("ask")
            question = await asked(updates)
            told: list[str | None] = []

            async def client(text: str | None) -> None:
                for _ in range(random.randrange(4)):
                    await trio.lowlevel.checkpoint()
                with suppress(NotPending):
                    await talk.answer_question(question.id, text, by=str(text))
                    told.append(text)

            async with trio.open_nursery() as nursery:
                for text in ("red", "blue", None):
                    nursery.start_soon(client, text)
            await idle(talk)
            (done,) = await kinds(talk, Question)
            assert [done.answer] == told
            with pytest.raises(NotPending):
                await talk.answer_question(question.id, "late")

    run_seeds(story, 60)


def test_an_interrupt_withdraws_it_whatever_comes_with_it() -> None:
    """H3-3: a late answer is told so, and nothing loops."""

    async def story(random: Random) -> None:
        async with world().talk() as (_, talk), talk.subscribe() as updates:
            await talk.send("ask")
            question = await asked(updates)

            async def interrupt() -> None:
                for _ in range(random.randrange(6)):
                    await trio.lowlevel.checkpoint()
                await talk.interrupt()

            answered = False
            async with trio.open_nursery() as nursery:
                nursery.start_soon(interrupt)
                for _ in range(random.randrange(6)):
                    await trio.lowlevel.checkpoint()
                with suppress(NotPending):
                    await talk.answer_question(question.id, "red")
                    answered = True
            await idle(talk)
            (done,) = await kinds(talk, Question)
            assert done.state == ("answered" if answered else "withdrawn")
            with pytest.raises(NotPending):
                await talk.answer_question(question.id, "red")
            assert (await talk.run("hello")).text == "fine"

    run_seeds(story, 60)


async def test_a_question_does_not_outlive_the_process(
    autojump_clock: trio.testing.MockClock,
) -> None:
    here = world()
    async with crashing(here), here.talk() as (_, talk), talk.subscribe() as updates:
        await talk.send("ask")
        question = await asked(updates)
        here.disk.cut_power()
    async with here.runtime() as runtime:
        reopened = await runtime.open_conversation(talk.id)
        with pytest.raises(NotPending):
            await reopened.answer_question(question.id, "red")
        assert [one.state for one in await kinds(reopened, Question)] == ["expired"]
        assert [one.state for one in await kinds(reopened, ToolCall)] == ["unknown"]
        assert (await reopened.info()).status == "idle"
        assert (await reopened.run("hello")).text == "fine"


async def test_agents_ask_at_once_and_each_gets_its_own_answer(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-4, for questions."""
    async with world().talk() as (_, talk):
        await talk.send("agents")
        await settle(1)
        open_ones = [
            item
            for session in (await snapshot(talk)).sessions
            for item in session.items
            if isinstance(item, Question)
        ]
        assert [one.state for one in open_ones] == ["pending", "pending"]
        first, second = open_ones
        await talk.answer_question(second.id, "blue")
        await settle(1)
        status = (await talk.status()).status
        assert status == "waitingAnswer"
        await talk.answer_question(first.id, "red")
        await settle(1)
        answers = {}
        for one in open_ones:
            page = await talk.items(session_id=one.session_id)
            answers[one.id] = next(text_of(i.result) for i in page.items if isinstance(i, ToolCall))
        assert answers == {first.id: "red", second.id: "blue"}


async def test_two_questions_of_one_step_wait_side_by_side(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """H3-6: an answer carries the id of what it is for."""
    async with world().talk() as (_, talk):
        await talk.send("twice")
        await settle(1)
        first, second = await kinds(talk, Question)
        await talk.answer_question(first.id, "red")
        await settle(1)
        states = [one.state for one in await kinds(talk, Question)]
        assert states == ["answered", "pending"]
        await talk.answer_question(second.id, "blue")
        await idle(talk)
        assert {text_of(call.result) for call in await calls(talk)} == {"red", "blue"}


class Dialog:
    """What an editor shows of the questions of one conversation."""

    def __init__(self) -> None:
        self.open: dict[str, str] = {}
        self.shown: list[str] = []

    def ask(self, question: Question) -> None:
        self.open[question.id] = question.text
        self.shown.append(question.id)

    def withdraw(self, question_id: str) -> None:
        del self.open[question_id]


class Broken(Dialog):
    def ask(self, question: Question) -> None:
        raise RuntimeError("no screen")


async def test_an_editor_is_told_and_its_answer_is_one_of_many(
    autojump_clock: trio.testing.MockClock, errors_logged: list[str]
) -> None:
    async with world().talk() as (runtime, talk), talk.subscribe() as updates:
        other = await runtime.create_conversation(directory="/w")
        dialog, broken, elsewhere, late = Dialog(), Broken(), Dialog(), Dialog()
        inbox = runtime.hub.inbox
        with (
            inbox.elicitation(talk.id, broken),
            inbox.elicitation(talk.id, dialog),
            inbox.elicitation(other.id, elsewhere),
        ):
            await talk.send("ask")
            question = await asked(updates)
            assert dialog.open == {question.id: question.text}
            with inbox.elicitation(talk.id, late):
                assert late.open == {question.id: question.text}  # what waits is told first
            await talk.answer_question(question.id, "red", by="another client")
            assert dialog.open == {}
            await idle(talk)
            await talk.send("ask")
            second = await asked(updates)
            await talk.answer_question(second.id, "blue", by="the editor")
            await idle(talk)
            assert dialog.shown == [question.id, second.id]
            assert late.shown == [question.id]
            assert elsewhere.shown == []
            assert len(errors_logged) == 4  # its failures are its own, asked and withdrawn
            await talk.send("ask")
            await asked(updates)
            await talk.interrupt()
            await idle(talk)
            assert dialog.open == {}


async def test_an_editor_may_answer_at_once_from_a_task_of_its_own(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """What it starts is not part of the actor that tells it."""
    async with world().talk() as (runtime, talk), trio.open_nursery() as nursery:

        class Quick(Dialog):
            def ask(self, question: Question) -> None:
                nursery.start_soon(talk.answer_question, question.id, question.choices[0])

            def withdraw(self, question_id: str) -> None:
                pass

        with runtime.hub.inbox.elicitation(talk.id, Quick()):
            assert (await talk.run("ask")).text == "red"


async def test_a_reader_that_is_woken_may_answer_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with world().talk() as (_, talk), trio.open_nursery() as nursery:

        async def read() -> None:
            while (update := updates.next_nowait()) is not None:
                match update:
                    case Frame(event=ItemChanged(item=Question(state="pending") as question)):
                        await talk.answer_question(question.id, "blue")
                    case _:
                        pass

        watching = talk.subscribe(on_ready=lambda: nursery.start_soon(read))
        async with watching as updates:
            await read()
            assert (await talk.run("ask")).text == "blue"
