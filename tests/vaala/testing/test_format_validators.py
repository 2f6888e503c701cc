"""The strict validators of three formats: good requests, and one counterexample for each rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.vaala.testing import anthropic_requests, gemini_requests, responses_requests
from tests.vaala.testing.counterexamples import Counterexample, Request, body_after
from vaala.testing.validators import (
    Violation,
    check_anthropic_request,
    check_gemini_request,
    check_responses_request,
)
from vaala.testing.validators.anthropic_rules import ANTHROPIC_RULES
from vaala.testing.validators.common import Rule
from vaala.testing.validators.gemini_rules import GEMINI_RULES
from vaala.testing.validators.responses_rules import RESPONSES_RULES

PICKS = 5


class Format(NamedTuple):
    check: Callable[..., list[Violation]]
    rules: tuple[Rule, ...]
    requests: ModuleType
    options: dict[str, Any]
    """The demands that only some servers make, all of which the good request meets."""


FORMATS = {
    "anthropic": Format(
        check_anthropic_request,
        ANTHROPIC_RULES,
        anthropic_requests,
        {"alternation": True, "tools_demanded": True},
    ),
    "responses": Format(check_responses_request, RESPONSES_RULES, responses_requests, {}),
    "gemini": Format(check_gemini_request, GEMINI_RULES, gemini_requests, {"signatures": True}),
}
every_format = pytest.mark.parametrize("name", FORMATS)


def rules_of(violations: list[Violation]) -> set[str]:
    return {violation.rule for violation in violations}


@every_format
def test_a_good_request_passes_as_a_mapping_and_as_bytes(name: str) -> None:
    form = FORMATS[name]
    request = form.requests.good_request()
    assert form.check(request, **form.options) == []
    assert form.check(json.dumps(request).encode(), **form.options) == []


# A7-3, B5-2
def test_thinking_in_a_tool_loop_and_a_paused_answer_pass() -> None:
    for request in (anthropic_requests.in_a_tool_loop(), anthropic_requests.paused()):
        assert check_anthropic_request(request) == []
    request = anthropic_requests.in_a_tool_loop()
    del request["thinking"]
    assert rules_of(check_anthropic_request(request)) == {"thinking.off"}
    assert check_anthropic_request(request, thinks_unasked=True) == []


# A4-1, B5-4, B7-1, B7-2, B7-3
@pytest.mark.parametrize(
    ("form", "counterexample"),
    [
        pytest.param(form, example, id=f"{name}-{example.rule}")
        for name, form in FORMATS.items()
        for example in form.requests.examples.found
    ],
)
def test_one_rule_alone_refuses_its_counterexample(
    form: Format, counterexample: Counterexample
) -> None:
    for seed in range(PICKS):
        body = body_after(counterexample, form.requests.good_request(), Random(seed).choice)
        violations = form.check(body, **counterexample.options)
        assert rules_of(violations) == {counterexample.rule}, (seed, violations)


@every_format
def test_every_rule_has_a_counterexample_and_a_source(name: str) -> None:
    form = FORMATS[name]
    ids = [rule.id for rule in form.rules]
    assert len(set(ids)) == len(ids)
    assert {example.rule for example in form.requests.examples.found} == set(ids)
    assert all(rule.source.startswith("https://") for rule in form.rules)


@every_format
def test_what_only_some_servers_demand_is_asked_for(name: str) -> None:
    form = FORMATS[name]
    for example in form.requests.examples.found:
        if example.options.keys() & form.options.keys():
            body = body_after(example, form.requests.good_request(), Random(0).choice)
            assert form.check(body) == [], example.rule


@every_format
def test_a_name_that_the_server_knows_is_allowed(name: str) -> None:
    form = FORMATS[name]
    request = form.requests.good_request()
    request["flavour"] = "mild"
    assert rules_of(form.check(request)) == {"keys.unknown"}
    assert form.check(request, extra_keys=("flavour",)) == []


@every_format
def test_a_violation_says_where_and_why(name: str) -> None:
    form = FORMATS[name]
    for example in form.requests.examples.found:
        body = body_after(example, form.requests.good_request(), Random(1).choice)
        for violation in form.check(body, **example.options):
            assert violation.path.startswith("$")
            assert violation.message
            assert violation.source.startswith("https://")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@every_format
@given(data=st.data())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_any_json_anywhere_is_judged_without_an_exception(name: str, data: st.DataObject) -> None:
    form = FORMATS[name]
    request: Request = form.requests.good_request()
    places: list[tuple[Any, Any]] = []
    pending: list[Any] = [request]
    while pending:
        node = pending.pop()
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        places += [(node, key) for key in keys]
        pending += [node[key] for key in keys if isinstance(node[key], dict | list)]
    node, key = data.draw(st.sampled_from(places))
    node[key] = data.draw(json_values)
    form.check(request, **form.options)
