"""A turn with tools: every call has one result, in call order, and the next step sees it."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio
import trio.testing

import vaala
from tests.vaala.runtime.driving import (
    calls,
    conversation,
    idle,
    is_item,
    is_turn,
    pending_approval,
    script,
    snapshot,
    until,
)
from vaala_protocol.content import text_of
from vaala_protocol.errors import NotPending
from vaala_protocol.items import (
    Approval,
    AssistantMessage,
    Interruption,
    ToolCall,
    UserMessage,
)


def call(tool: str, result: str | None = None, **arguments: object) -> dict[str, object]:
    return {"tool": tool, "arguments": arguments, **({"as": result} if result else {})}


async def test_results_reach_the_model_in_call_order(tmp_path: Path) -> None:  # A5-2
    order: list[str] = []
    gates = {name: trio.Event() for name in "abc"}

    async def wait_for(name: str) -> str:
        """Wait for a gate."""
        await gates[name].wait()
        order.append(name)
        return f"result {name}"

    model = script(
        {"call": [call("wait_for", n, name=n) for n in "abc"]},
        {"say": "{{ results.a }}, {{ results.b }}, {{ results.c }}"},
    )
    async with conversation(model, tmp_path, tools=[wait_for]) as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            for name in "cab":
                await trio.testing.wait_all_tasks_blocked()
                gates[name].set()
            await until(updates, is_turn("completed"))
        assert order == ["c", "a", "b"]
        assert [text_of(one.result) for one in await calls(talk)] == [
            "result a", "result b", "result c",
        ]  # fmt: skip
        last = (await talk.items()).items[-1]
        assert isinstance(last, AssistantMessage)
        assert last.text == "result a, result b, result c"


async def test_one_broken_tool_loses_no_sibling(tmp_path: Path) -> None:  # A5-1
    async def breaks() -> str:
        """Break."""
        raise RuntimeError("a bug")

    async def works() -> str:
        """Work."""
        await trio.testing.wait_all_tasks_blocked()
        return "fine"

    model = script({"call": [call("breaks"), call("works")]}, {"say": "done"})
    async with conversation(model, tmp_path, tools=[breaks, works]) as (_, talk):
        result = await talk.run("go")
        assert result.turn.state == "completed"
        broken, fine = await calls(talk)
        assert broken.state == "error"
        assert "a bug" in text_of(broken.result)
        assert (fine.state, text_of(fine.result)) == ("done", "fine")


async def test_interrupt_keeps_what_is_done_and_cancels_the_rest(  # A1-1, A1-2, A5-3
    tmp_path: Path,
) -> None:
    async def quick() -> str:
        """Return at once."""
        return "quick"

    model = script(
        {"call": [call("quick"), call("exec_command", command="sleep 60"), call("quick")]},
        {"say": "resumed"},
    )
    async with conversation(model, tmp_path, tools=[quick]) as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            await until(updates, is_item(ToolCall, name="quick", state="done"))
            await until(updates, is_item(ToolCall, name="quick", state="done"))
            assert await talk.interrupt()
            await until(updates, is_turn("interrupted"))
        assert [one.state for one in await calls(talk)] == ["done", "cancelled", "done"]
        kinds = [type(item) for item in (await talk.items()).items]
        assert kinds.count(Interruption) == 1
        assert not await talk.interrupt()
        assert (await talk.run("go on")).text == "resumed"


async def test_interrupt_while_the_answer_comes_keeps_its_text(tmp_path: Path) -> None:
    model = script({"say": "half a sentence", "hang": True}, {"say": "whole"})
    async with conversation(model, tmp_path) as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            await trio.testing.wait_all_tasks_blocked()
            assert await talk.interrupt()
            await until(updates, is_turn("interrupted"))
        said = [i for i in (await talk.items()).items if isinstance(i, AssistantMessage)]
        assert [(one.text, one.partial) for one in said] == [("half a sentence", True)]


async def test_steer_is_taken_before_the_next_model_call(tmp_path: Path) -> None:  # H5-2
    gate = trio.Event()

    async def wait() -> str:
        """Wait."""
        await gate.wait()
        return "ok"

    model = script({"call": [call("wait")]}, {"say": "one"}, {"say": "two"})
    async with conversation(model, tmp_path, tools=[wait]) as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            await until(updates, is_item(ToolCall, state="running"))
            await talk.send("and be quick", delivery="steer")
            gate.set()
            await until(updates, is_turn("completed"))
        items = (await talk.items()).items
        said = [(item.step, item.text) for item in items if isinstance(item, AssistantMessage)]
        asked = [item.step for item in items if isinstance(item, UserMessage)]
        assert asked == [1, 2]
        assert (2, "one") in said


async def test_a_late_steer_causes_another_model_call(tmp_path: Path) -> None:
    gate = trio.Event()
    model = script({"say": "one", "wait": "gate"}, {"say": "two"}, gates={"gate": gate})
    async with conversation(model, tmp_path) as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            await trio.testing.wait_all_tasks_blocked()
            await talk.send("wait, also this", delivery="steer")
            gate.set()
            await until(updates, is_turn("completed"))
        items = (await talk.items()).items
        assert [type(item) for item in items] == [
            UserMessage, AssistantMessage, UserMessage, AssistantMessage,
        ]  # fmt: skip
        assert len({item.turn_id for item in items}) == 1


async def test_queue_is_held_after_an_interrupt_and_released_in_order(  # H5-1, H4-5
    tmp_path: Path,
) -> None:
    gate = trio.Event()
    model = script({"say": "ok", "wait": "gate"}, gates={"gate": gate})
    async with conversation(model, tmp_path) as (_, talk):
        await talk.send("first")
        await trio.testing.wait_all_tasks_blocked()
        for text in ("second", "third"):
            await talk.send(text)
        await talk.interrupt()
        gate.set()
        await idle(talk)
        assert [one.state for one in (await snapshot(talk)).sessions[0].queue] == ["held", "held"]
        assert (await talk.run("fourth")).turn.state == "completed"
        said = [i for i in (await talk.items()).items if isinstance(i, UserMessage)]
        assert [text_of(one.content) for one in said] == ["first", "second", "third", "fourth"]


async def test_send_right_after_interrupt_runs_after_the_barrier(tmp_path: Path) -> None:  # H4-5
    gate = trio.Event()
    model = script({"say": "ok", "wait": "gate"}, gates={"gate": gate})
    async with conversation(model, tmp_path) as (_, talk):
        await talk.send("first")
        await trio.testing.wait_all_tasks_blocked()
        await talk.send("second")
        assert await talk.interrupt()
        gate.set()
        result = await talk.run("third")
        assert result.text == "ok"
        said = [i for i in (await talk.items()).items if isinstance(i, UserMessage)]
        assert [text_of(one.content) for one in said] == ["first", "second", "third"]


async def test_same_client_id_is_one_message(tmp_path: Path) -> None:  # H5-3
    async with conversation(script({"say": "ok"}), tmp_path) as (_, talk):
        first = await talk.send("hi", client_id="me-1")
        again = await talk.send("hi", client_id="me-1")
        assert first.id == again.id
        await idle(talk)
        said = [i for i in (await talk.items()).items if isinstance(i, UserMessage)]
        assert len(said) == 1


async def test_approval_is_asked_and_the_answer_decides(tmp_path: Path) -> None:  # H3-1
    model = script(
        {"call": [call("exec_command", "one", command="echo yes > made")]},
        {"call": [call("exec_command", "two", command="echo no > refused")]},
        {"say": "done"},
    )
    async with conversation(model, tmp_path, mode="ask") as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            first = await pending_approval(updates)
            assert (await talk.info()).status == "waitingApproval"
            await talk.answer_approval(first.id, "allow", by="me")
            second = await pending_approval(updates)
            with pytest.raises(NotPending):
                await talk.answer_approval(first.id, "reject", by="late")
            await talk.answer_approval(second.id, "reject", by="me", reason="not that")
            await until(updates, is_turn("completed"))
        allowed, denied = await calls(talk)
        assert (allowed.state, denied.state) == ("done", "denied")
        assert denied.reason is not None
        assert "not that" in denied.reason
        assert (tmp_path / "made").exists()
        assert not (tmp_path / "refused").exists()


async def test_approval_dies_with_its_turn(tmp_path: Path) -> None:  # H3-3
    model = script({"call": [call("exec_command", command="echo")]}, {"say": "done"})
    async with conversation(model, tmp_path, mode="ask") as (_, talk):
        async with trio.open_nursery() as nursery, talk.subscribe() as updates:
            nursery.start_soon(talk.run, "go")
            asked = await pending_approval(updates)
            await talk.interrupt()
            await until(updates, is_item(Approval, state="withdrawn"))
        with pytest.raises(NotPending):
            await talk.answer_approval(asked.id, "allow")
        assert [one.state for one in await calls(talk)] == ["cancelled"]


async def test_the_loop_guard_ends_a_turn_with_a_reason(tmp_path: Path) -> None:  # A6-3, A6-1
    model = script({"repeat": 50, "steps": [{"call": [call("no_such_tool", x=1)]}]}, {"say": "no"})
    async with conversation(model, tmp_path) as (_, talk):
        result = await talk.run("go")
    assert (result.turn.state, result.turn.stop_reason) == ("completed", "loop")
    assert "no_such_tool failed 4 times" in result.turn.message


async def test_budget_of_steps(tmp_path: Path) -> None:
    async def ok() -> str:
        """Succeed."""
        return "ok"

    budgets = vaala.Budgets(steps_max=3)
    agents = {"default": vaala.AgentDefinition("default", "Work.", budgets=budgets)}
    model = script({"repeat": 50, "steps": [{"call": [call("ok")]}]})
    async with conversation(model, tmp_path, tools=[ok], agents=agents) as (_, talk):
        result = await talk.run("go")
    assert (result.turn.stop_reason, result.turn.steps) == ("max_steps", 3)


async def test_budget_of_time(tmp_path: Path, autojump_clock: trio.testing.MockClock) -> None:
    budgets = vaala.Budgets(seconds_max=30)
    agents = {"default": vaala.AgentDefinition("default", "Work.", budgets=budgets)}
    async with conversation(script({"hang": True, "say": "x"}), tmp_path, agents=agents) as (_, c):
        result = await c.run("go")
    assert (result.turn.state, result.turn.interrupted_by) == ("interrupted", "budget")
    assert trio.current_time() >= 30
    assert isinstance(autojump_clock, trio.testing.MockClock)


async def test_a_snapshot_shows_every_pending_approval(tmp_path: Path) -> None:
    model = script({"call": [call("exec_command", command=f"echo {n}") for n in range(40)]})
    async with (
        conversation(model, tmp_path, mode="ask") as (_, talk),
        trio.open_nursery() as nursery,
        talk.subscribe() as updates,
    ):
        nursery.start_soon(talk.run, "go")
        await pending_approval(updates)
        shown = (await snapshot(talk)).sessions[0].items
        pending = [i for i in shown if isinstance(i, Approval) and i.state == "pending"]
        assert len(pending) == 40
        assert [item.at for item in shown] == sorted({item.at for item in shown})
        await talk.interrupt()


async def test_a_long_turn_writes_checkpoints_between_its_steps(tmp_path: Path) -> None:
    async def much() -> str:
        """Return much."""
        return "x" * 30_000

    model = script({"repeat": 30, "steps": [{"call": [call("much")]}]}, {"say": "done"})
    async with conversation(model, tmp_path, tools=[much]) as (runtime, talk):
        await talk.run("go")
        session = await (await runtime.conversation(talk.id)).root()
        whole = session.state
        again = await session.around.log.open_session(session.id)
        assert again.state.head == whole.head
        assert not again.checkpoint_due


async def test_commands_do_not_see_the_keys_of_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    model = script({"call": [call("exec_command", command="env")]}, {"say": "done"})
    async with conversation(model, tmp_path) as (_, talk):
        await talk.run("go")
        (command,) = await calls(talk)
    assert "PATH=" in text_of(command.result)
    assert "sk-secret" not in text_of(command.result)


async def test_budget_of_tokens(tmp_path: Path) -> None:
    async def ok() -> str:
        """Succeed."""
        return "ok"

    budgets = vaala.Budgets(tokens_max=250)
    agents = {"default": vaala.AgentDefinition("default", "Work.", budgets=budgets)}
    spend = {"call": [call("ok")], "usage": {"input": 90, "output": 10}}
    model = script({"repeat": 50, "steps": [spend]})
    async with conversation(model, tmp_path, tools=[ok], agents=agents) as (_, talk):
        result = await talk.run("go")
    assert (result.turn.stop_reason, result.turn.steps) == ("budget", 3)
    assert "300 tokens" in result.turn.message
