"""What a model is sent for the cases that have broken others' histories."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.vaala.core.chat import body_of, chat_model, messages_in
from tests.vaala.core.items import TURN, call, said, text, user
from vaala.agent.history import History, last_words_of, messages_of, read_history
from vaala.changes import replace
from vaala.models.base import AssistantSaid
from vaala_protocol.content import ImageContent
from vaala_protocol.items import CommandEnd, Item, Private, Reasoning, Skill, ToolCall

PICTURE = ImageContent(blob="b", media_type="image/png", size_bytes=3)


def sent(*steps: list[Item], open_items: list[Item] | None = None) -> list[dict[str, Any]]:
    """Return the messages of a request after these steps; a strict server takes it."""
    history = History(chat_model())
    for step in steps:
        history.close(step)
    prompt: list[Item] = [user(1_000, words="go on", step=9)]
    return messages_in(body_of(history, prompt if open_items is None else open_items))


def results(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_a_cancelled_call_has_a_result_that_says_so() -> None:  # A1-1
    messages = sent([user(1, words="run it"), call(2, "cancelled", reason="Interrupted.")])
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "user"]
    assert messages[1]["tool_calls"][0]["id"] == messages[2]["tool_call_id"]
    assert results(messages) == ["The call was cancelled. Interrupted."]


def test_the_result_of_a_finished_sibling_is_kept() -> None:  # A1-2
    messages = sent([user(1, words="both"), call(2, "done", "all green"), call(3, "cancelled")])
    assert results(messages) == ["all green", "The call was cancelled."]


@pytest.mark.parametrize("state", ["unknown", "running", "waiting"])
def test_a_call_without_an_end_is_told_as_unknown(state: Any) -> None:  # A1-3, A1-4
    [result] = results(sent([user(1, words="run"), call(2, state)]))
    assert "unknown" in result
    assert "check before you repeat it" in result


def test_a_denied_call_tells_why() -> None:
    messages = sent([user(1, words="run"), call(2, "denied", reason="Refused by user.")])
    assert results(messages) == ["The call was not allowed. Refused by user."]


def test_no_arguments_are_an_empty_object() -> None:  # A2-3
    messages = sent([user(1, words="x"), call(2, "error", "path is missing", arguments="")])
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert results(messages) == ["path is missing"]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a": 1,}', '{"a": None}', "{'a': 1}",  # A2-4
        '{"path":"a","path":"/etc/passwd"}', '{"a": NaN}', "[" * 50_000,  # A2-5
        '{"path":"a.txt","content":"hel',  # A2-1
        '{"a":"\\u0000"}', '{"a":"\\ud800"}', '["a"]', '{"a":' * 100 + "1" + "}" * 100,
    ],
)  # fmt: skip
def test_what_is_no_strict_object_is_shown_to_the_model_in_one(arguments: str) -> None:
    messages = sent([user(1, words="x"), call(2, "error", "bad", arguments=arguments)])
    shown = json.loads(messages[1]["tool_calls"][0]["function"]["arguments"])
    assert shown.keys() == {"malformed_arguments"}
    assert arguments.startswith(shown["malformed_arguments"])


def test_good_arguments_are_sent_as_they_were_written() -> None:
    arguments = ' {"a" : [1, "\\u00e9", "\U0001f600"]} '
    messages = sent([user(1, words="x"), call(2, arguments=arguments)])
    assert messages[1]["tool_calls"][0]["function"]["arguments"] == arguments


def test_ids_of_calls_are_distinct_and_stay_the_same() -> None:  # A3-3
    step: list[Item] = [user(1, words="x"), call(2, "done", "A"), call(3, "done", "B")]
    first, again = sent(step), sent(step)
    ids = [one["id"] for one in first[1]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in first[2:4]] == ids
    assert first == again


def test_a_repeated_id_becomes_distinct() -> None:
    step: list[Item] = [user(1, words="x"), call(2, "done", "A"), call(2, "done", "B")]
    messages = sent(step, step)
    ids = [one["id"] for message in messages for one in message.get("tool_calls", ())]
    assert len(set(ids)) == 4
    assert results(messages) == ["A", "B", "A", "B"]


def test_an_answer_of_nothing_is_not_sent() -> None:  # A4-1
    messages = sent([user(1, words="hello"), said(2, "")])
    assert [message["content"] for message in messages] == ["hello", "go on"]


def test_blank_text_beside_a_call_is_dropped() -> None:  # A4-2
    messages = sent([user(1, words="x"), said(2, "\n\n"), call(3, "done", "ok")])
    assert messages[1]["content"] is None
    assert len(messages[1]["tool_calls"]) == 1


def test_a_prompt_that_is_only_an_image_or_a_skill() -> None:  # A4-3
    [message] = sent(open_items=[user(1, PICTURE)])
    assert "image/png" in message["content"]
    skill = Skill(id="s", at=1, created_at=1, turn_id=TURN, step=1, name="review", text="Look.")
    [message] = sent(open_items=[skill])
    assert message["content"] == "Skill review:\nLook."


@pytest.mark.parametrize("blank", ["\u200b", "\ufeff", "\u200b \ufeff\n\u200b \u2060"])
def test_text_that_shows_nothing_is_dropped(blank: str) -> None:  # A4-4
    messages = sent([user(1, words="hello"), said(2, blank)])
    assert [message["content"] for message in messages] == ["hello", "go on"]
    assert sent(open_items=[user(1, words=blank)])[0]["content"] == "(an empty message)"


def test_results_are_sent_in_the_order_of_the_calls() -> None:  # A5-2
    calls = [call(2, "done", "A"), call(3, "done", "B"), call(4, "done", "C")]
    finished: list[Item] = [user(1, words="x"), calls[2], calls[0], calls[1]]
    assert results(sent(finished)) == ["A", "B", "C"]


def test_opaque_data_stays_with_its_part_and_is_not_sent_by_chat() -> None:  # A7-2
    private = Private(provider="p", api="a", model="m", data={"signature": "c2ln"})
    thought = Reasoning(id="r", at=2, created_at=1, turn_id=TURN, step=1, text="hm",
                        private=private)  # fmt: skip
    signed = replace(call(4), private=private)
    step: list[Item] = [
        user(1, words="x"), thought, replace(said(3, "So."), private=private), signed,
    ]  # fmt: skip
    answer = messages_of(step, None)[1]
    assert isinstance(answer, AssistantSaid)
    assert answer.private == private
    assert [part.private for part in answer.reasoning] == [private]
    assert [part.private for part in answer.calls] == [private]
    assert "c2ln" not in json.dumps(sent(step))


def test_the_first_message_is_a_person_s_and_answers_do_not_follow_each_other() -> None:
    messages = sent([said(1, "First.")], [said(2, "Second.", 2)])
    assert [message["role"] for message in messages] == [
        "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip


def test_there_is_always_something_to_answer() -> None:
    assert sent(open_items=[])[-1] == {"role": "user", "content": "(Go on.)"}
    answered = sent([user(1, words="x"), said(2, "Done.")], open_items=[])
    assert answered[-1] == {"role": "user", "content": "(Go on.)"}
    called = sent([user(1, words="x"), call(2, "done", "ok")], open_items=[])
    assert called[-1]["role"] == "tool"


async def test_the_turn_that_goes_on_is_left_out() -> None:
    async def pages() -> Any:
        yield [user(1, words="before"), said(2, "Yes.")]
        yield [replace(user(3, words="now"), turn_id="running")]

    history = await read_history(chat_model(), pages(), ("running", 1))
    assert [one["content"] for one in messages_in(body_of(history, []))][:2] == ["before", "Yes."]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"exit_code": 3}, "ended with exit code 3."),
        ({"signal": 9}, "was ended by signal 9."),
        ({"lost": True}, "was lost: the runtime ended while it ran."),
        ({}, "ended, and its exit code is not known."),
    ],
)
def test_how_a_background_command_ended(fields: dict[str, Any], told: str) -> None:
    ended = CommandEnd(
        id="e", at=2, created_at=1, command_id="c1", tool_call_id="t", command="make", **fields
    )
    messages = sent([user(1, words="run"), ended])
    assert f"The background command c1 (make) {told}" in str(messages)


def test_the_last_words_are_those_of_the_last_step_with_an_answer() -> None:
    items = [said(1, "First."), said(2, "Then ", 2), said(3, "this.", 2), said(4, "", 3)]
    assert last_words_of(items) == "Then this."
    assert last_words_of([]) == ""


def test_a_result_without_text_says_that_there_is_none() -> None:
    empty = ToolCall(**{**_fields(call(2)), "result": text(" \n")})
    assert results(sent([user(1, words="x"), empty])) == ["(no output)"]


def _fields(item: ToolCall) -> dict[str, Any]:
    return {name: getattr(item, name) for name in item.__struct_fields__}
