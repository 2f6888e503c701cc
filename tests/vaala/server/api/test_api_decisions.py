"""Approvals and questions by clients: in every snapshot, the first answer wins, all are told."""

from __future__ import annotations

from random import Random

import pytest
import trio

from tests.vaala.core.seeds import run_seeds
from tests.vaala.runtime.driving import script
from tests.vaala.server.api.serving import (
    Client,
    is_item,
    is_turn,
    machine,
    server,
    settled,
    state_of,
)
from vaala.models.scripted import ScriptedModel
from vaala.tools.function import tool
from vaala_protocol.errors import NotPending
from vaala_protocol.items import Approval, Question, ToolCall
from vaala_protocol.methods.conversation import ConversationForkParams
from vaala_protocol.methods.decisions import ApprovalAnswerParams, QuestionAnswerParams
from vaala_protocol.methods.runtime import (
    DecisionPending,
    DecisionSettled,
    RuntimeEventNotification,
    RuntimeSubscribeParams,
)
from vaala_protocol.methods.session import SessionInterruptParams
from vaala_protocol.state import Snapshot


class Desk:
    """A tool that needs a decision, and how often it ran."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.tools = [tool(self.act, access="execute")]

    async def act(self, what: str) -> str:
        """Do it."""
        self.ran.append(what)
        return what

    @staticmethod
    def model(*whats: str) -> ScriptedModel:
        calls = [{"tool": "act", "arguments": {"what": what}} for what in whats]
        return script({"say": "may I?", "call": calls}, {"say": "done"})


async def pending(client: Client) -> Approval:
    asked = await client.hear(is_item(Approval, state="pending"))
    approval = asked.frame.event.item
    assert isinstance(approval, Approval)
    return approval


def pending_in(snapshot: Snapshot | None) -> list[Approval]:
    assert snapshot is not None
    return [
        item
        for session in snapshot.sessions
        for item in session.items
        if isinstance(item, Approval) and item.state == "pending"
    ]


async def test_an_approval_outlives_the_client_that_saw_it(autojump_clock: object) -> None:
    """H3-1."""
    desk = Desk()
    async with server(desk.model("a"), tools=desk.tools, executors=machine()) as served:
        async with served.client("first") as first:
            talk = await first.create("ask")
            await first.watch(talk)
            await first.send(talk, "go")
            asked = await pending(first)
        async with served.client("second") as second:
            (seen,) = pending_in(await second.watch(talk))
            assert seen.id == asked.id
            answer = ApprovalAnswerParams(conversation_id=talk, approval_id=seen.id, option="allow")
            await second.call(answer)
            done = await second.hear(is_item(Approval, state="answered"))
            assert done.frame.event.item.answer.by == "second"
            await second.hear(is_turn("completed"))
    assert desk.ran == ["a"]


async def test_a_decision_waits_for_no_change_of_its_conversation(
    autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(conversation_id: str, turn_id: str | None = None) -> None:
        await trio.sleep_forever()

    desk = Desk()
    async with (
        server(desk.model("a"), tools=desk.tools, executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create("ask")
        await client.watch(talk)
        await client.send(talk, "go")
        asked = await pending(client)
        monkeypatch.setattr(served.runtime, "fork_conversation", never)
        await client.begin(ConversationForkParams(conversation_id=talk))
        answer = ApprovalAnswerParams(conversation_id=talk, approval_id=asked.id, option="allow")
        await client.call(answer)
        await client.hear(is_turn("completed"))
    assert desk.ran == ["a"]


def test_of_two_answers_one_wins_and_both_are_told() -> None:
    """H3-2, H3-5."""

    async def story(random: Random) -> None:
        desk = Desk()
        async with (
            server(desk.model("a"), tools=desk.tools, executors=machine()) as served,
            served.client("yes") as yes,
            served.client("no") as no,
        ):
            talk = await yes.create("ask")
            for client in (yes, no):
                await client.watch(talk)
            await yes.send(talk, "go")
            told: dict[str, bool] = {}

            async def decide(client: Client, option: str, who: str) -> None:
                asked = await pending(client)
                for _ in range(random.randrange(6)):
                    await trio.lowlevel.checkpoint()
                try:
                    await client.call(
                        ApprovalAnswerParams(
                            conversation_id=talk, approval_id=asked.id, option=option, by=who
                        )
                    )
                    told[who] = True
                except NotPending:
                    told[who] = False

            async with trio.open_nursery() as nursery:
                nursery.start_soon(decide, yes, "allow", "yes")
                nursery.start_soon(decide, no, "reject", "no")
            assert sorted(told.values()) == [False, True]
            winner = "yes" if told["yes"] else "no"
            for client in (yes, no):
                note = await client.hear(is_item(Approval, state="answered"))
                assert note.frame.event.item.answer.by == winner
                await client.hear(is_turn("completed"))
            assert desk.ran == (["a"] if winner == "yes" else [])

    run_seeds(story, 25)


async def test_a_cancelled_prompt_vanishes_for_all(autojump_clock: object) -> None:
    """H3-3."""
    desk = Desk()
    async with (
        server(desk.model("a"), tools=desk.tools, executors=machine()) as served,
        served.client("one") as one,
        served.client("two") as two,
    ):
        talk = await one.create("ask")
        firsts = [await client.watch(talk) for client in (one, two)]
        await one.send(talk, "go")
        asked = await pending(two)
        await one.call(SessionInterruptParams(conversation_id=talk))
        await two.hear(is_turn("interrupted"))
        await settled()
        for client, first in zip((one, two), firsts, strict=True):
            assert first is not None
            assert pending_in(state_of(client, talk, first)) == []
        for _ in range(2):
            with pytest.raises(NotPending):
                await two.call(
                    ApprovalAnswerParams(conversation_id=talk, approval_id=asked.id, option="allow")
                )
        assert desk.ran == []


async def test_an_answer_names_its_prompt(autojump_clock: object) -> None:
    """H3-4, H3-6: of two prompts at once the one that is named is decided."""
    desk = Desk()
    async with (
        server(desk.model("a", "b"), tools=desk.tools, executors=machine()) as served,
        served.client() as client,
    ):
        talk = await client.create("ask")
        await client.watch(talk)
        await client.send(talk, "go")
        await settled()
        calls = {
            note.frame.event.item.id: note.frame.event.item
            for note in client.heard
            if is_item(ToolCall)(note)
        }
        asked = [
            note.frame.event.item
            for note in client.heard
            if is_item(Approval, state="pending")(note)
        ]
        assert len(asked) == 2
        second = next(one for one in asked if '"b"' in calls[one.tool_call_id].arguments)
        await client.call(
            ApprovalAnswerParams(conversation_id=talk, approval_id=second.id, option="allow")
        )
        await settled()
        assert desk.ran == ["b"]
        (left,) = pending_in(await client.watch(talk))
        assert left.id != second.id


async def test_a_question_is_answered_once_and_the_inbox_knows(autojump_clock: object) -> None:
    ask = {"tool": "ask_user", "arguments": {"question": "which?", "choices": ["a", "b"]}}
    model = script({"call": [ask]}, {"say": "done"})
    async with (
        server(model, executors=machine()) as served,
        served.client("inbox") as inbox,
        served.client("driver") as driver,
    ):
        await inbox.call(RuntimeSubscribeParams())
        talk = await driver.create()
        await driver.watch(talk)
        await driver.send(talk, "go")
        told = await inbox.hear(
            lambda note: (
                isinstance(note, RuntimeEventNotification)
                and isinstance(note.frame.event, DecisionPending)
            )
        )
        question = told.frame.event.pending.decision
        assert isinstance(question, Question)
        assert question.text == "which?"
        answer = QuestionAnswerParams(conversation_id=talk, question_id=question.id, answer="b")
        await inbox.call(answer)
        with pytest.raises(NotPending):
            await driver.call(answer)
        settled_note = await inbox.hear(
            lambda note: (
                isinstance(note, RuntimeEventNotification)
                and isinstance(note.frame.event, DecisionSettled)
            )
        )
        assert settled_note.frame.event.decision_id == question.id
        done = await driver.hear(is_item(Question, state="answered"))
        assert (done.frame.event.item.answer, done.frame.event.item.answered_by) == ("b", "inbox")
        await driver.hear(is_turn("completed"))
