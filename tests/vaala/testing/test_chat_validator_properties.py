"""Random changes of good chat requests: legal ones pass, each other is told by its rule alone."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.testing.chat_requests import (
    call,
    called,
    calling,
    examples,
    good_request,
    result,
    tool,
    two_users,
)
from tests.vaala.testing.counterexamples import Pick, Request, body_after
from vaala.testing.validators import validate_chat_request

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(st.data())
@settings(max_examples=300, deadline=None, derandomize=True)
def test_any_json_anywhere_is_judged_without_an_exception(data: st.DataObject) -> None:
    request = good_request()
    places: list[tuple[Any, Any]] = []
    pending: list[Any] = [request]
    while pending:
        node = pending.pop()
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        places += [(node, key) for key in keys]
        pending += [node[key] for key in keys if isinstance(node[key], dict | list)]
    node, key = data.draw(st.sampled_from(places))
    node[key] = data.draw(json_values)
    validate_chat_request(request, alternation=True, mistral_call_ids=True)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).filter(
    lambda text: text.strip() != ""
)


@st.composite
def conversations(draw: st.DrawFn) -> Request:
    """A good request of some rounds: prompt, calls with results in any order, answer."""
    request = good_request()
    messages: list[Request] = []
    for number in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(texts)})
        for step in range(draw(st.integers(1, 2))):
            ids = [f"c{number}s{step}n{i:04}" for i in range(draw(st.integers(1, 3)))]
            content = draw(st.none() | texts)
            calls = [call(call_id) for call_id in ids]
            messages.append({"role": "assistant", "content": content, "tool_calls": calls})
            messages += [result(call_id, draw(texts)) for call_id in draw(st.permutations(ids))]
        messages.append({"role": "assistant", "content": draw(texts)})
    system = {"role": "system", "content": draw(texts)}
    request["messages"] = [system, *messages, {"role": "user", "content": draw(texts)}]
    return request


def second_prompt(request: Request, data: st.DataObject) -> None:
    two_users(request, picker(data))


def text_as_parts(request: Request, data: st.DataObject) -> None:
    message = data.draw(st.sampled_from([m for m in request["messages"] if m["content"]]))
    message["content"] = [{"type": "text", "text": message["content"]}]


def no_content_beside_calls(request: Request, data: st.DataObject) -> None:
    calling(request, picker(data)).pop("content")


def no_system(request: Request, data: st.DataObject) -> None:
    del request["messages"][0]


def no_tools(request: Request, data: st.DataObject) -> None:
    for key in ("tools", "tool_choice", "parallel_tool_calls"):
        del request[key]


def no_stream(request: Request, data: st.DataObject) -> None:
    del request["stream"], request["stream_options"]


def interrupted(request: Request, data: st.DataObject) -> None:
    last = max(i for i, m in enumerate(request["messages"]) if m["role"] == "tool")
    del request["messages"][last + 1]


def ends_with_a_result(request: Request, data: st.DataObject) -> None:
    del request["messages"][-2:]


def setting(request: Request, data: st.DataObject) -> None:
    legal = {
        "temperature": st.floats(0, 2),
        "top_p": st.floats(0, 1) | st.none(),
        "max_tokens": st.integers(1, 2**31) | st.none(),
        "seed": st.integers(-(2**31), 2**31),
        "stop": st.text(st.characters(categories=["L"]), min_size=1) | st.none(),
        "reasoning_effort": st.sampled_from(["low", "high"]),
        "tool_choice": st.sampled_from(
            ["none", "required", {"type": "function", "function": {"name": "read_file"}}]
        ),
        "response_format": st.just(
            {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
        ),
    }
    key = data.draw(st.sampled_from(sorted(legal)))
    request[key] = data.draw(legal[key])


def another_tool(request: Request, data: st.DataObject) -> None:
    name = data.draw(st.from_regex(r"[a-zA-Z0-9_-]{1,64}", fullmatch=True))
    if name not in ("read_file", "write_file"):
        request["tools"].append(tool(name))


def other_arguments(request: Request, data: st.DataObject) -> None:
    arguments = data.draw(st.dictionaries(texts, texts | st.integers() | st.lists(st.booleans())))
    called(request, picker(data))["arguments"] = json.dumps(arguments)


LEGAL = (
    second_prompt,
    text_as_parts,
    no_content_beside_calls,
    no_system,
    no_tools,
    no_stream,
    interrupted,
    ends_with_a_result,
    setting,
    another_tool,
    other_arguments,
)


def picker(data: st.DataObject) -> Pick:
    return lambda options: options[data.draw(st.integers(0, len(options) - 1))]


@given(conversations(), st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_legal_change_stays_valid(request_: Request, data: st.DataObject) -> None:
    data.draw(st.sampled_from(LEGAL))(request_, data)
    assert validate_chat_request(request_) == []
    assert validate_chat_request(json.dumps(request_).encode()) == []


@given(conversations(), st.data())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_a_violating_change_is_told_by_its_rule_alone(
    request_: Request, data: st.DataObject
) -> None:
    counterexample = data.draw(st.sampled_from(examples.found))
    bound = {"max_body_bytes": len(json.dumps(request_).encode()) + 1_000}
    options = counterexample.options if "max_body_bytes" not in counterexample.options else bound
    body = body_after(counterexample, request_, picker(data))
    violations = validate_chat_request(body, **options)
    assert {violation.rule for violation in violations} == {counterexample.rule}
