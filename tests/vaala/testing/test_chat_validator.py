"""The strict chat validator: one counterexample for each rule."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.vaala.testing.chat_requests import examples, good_request, rename, two_users
from tests.vaala.testing.counterexamples import Counterexample, body_after
from vaala.testing.validators import Violation, validate_chat_request
from vaala.testing.validators.chat_rules import CHAT_RULES


def rules_of(violations: list[Violation]) -> set[str]:
    return {violation.rule for violation in violations}


def first(options: list[Any]) -> Any:
    return options[0]


def test_a_good_request_passes_as_a_mapping_and_as_bytes() -> None:
    request = good_request()
    assert validate_chat_request(request, alternation=True, mistral_call_ids=True) == []
    encoded = json.dumps(request).encode()
    assert validate_chat_request(encoded, max_body_bytes=len(encoded)) == []


# B5-4, B7-1, B7-2, B7-3, B7-4
@pytest.mark.parametrize("counterexample", examples.found, ids=lambda c: c.rule)
def test_one_rule_alone_refuses_its_counterexample(counterexample: Counterexample) -> None:
    body = body_after(counterexample, good_request(), first)
    violations = validate_chat_request(body, **counterexample.options)
    assert rules_of(violations) == {counterexample.rule}


def test_every_rule_has_a_counterexample_and_a_source() -> None:
    ids = [rule.id for rule in CHAT_RULES]
    assert len(set(ids)) == len(ids)
    assert {counterexample.rule for counterexample in examples.found} == set(ids)
    assert all(rule.source.startswith("https://") for rule in CHAT_RULES)


def test_a_violation_says_where_and_why() -> None:
    request = good_request()
    request["messages"][4]["content"] = ""
    (violation,) = validate_chat_request(request)
    assert violation.path == "$.messages[4].content"
    assert "blank" in violation.message
    assert violation.source.startswith("https://")


def test_alternation_and_mistral_ids_are_asked_for() -> None:
    request = good_request()
    rename(request, first, "call_0123456789")
    two_users(request, first)
    assert validate_chat_request(request) == []
    assert rules_of(validate_chat_request(request, alternation=True)) == {"order.alternation"}
    assert rules_of(validate_chat_request(request, mistral_call_ids=True)) == {
        "tool_call.id_mistral"
    }


def test_keys_that_the_server_knows_are_allowed_by_name() -> None:
    request = good_request()
    request["num_ctx"] = 8192
    request["messages"][5]["reasoning_content"] = "thinking"
    assert rules_of(validate_chat_request(request)) == {"keys.unknown", "message.keys"}

    def with_names(request: dict[str, Any]) -> list[Violation]:
        names = ("reasoning_content",)
        return validate_chat_request(request, extra_keys=("num_ctx",), extra_message_keys=names)

    assert with_names(request) == []
    request["messages"][5]["reasoning_content"] = "cut \ud83d"
    assert rules_of(with_names(request)) == {"text.surrogate"}


def test_several_faults_are_all_told() -> None:
    request = good_request()
    request["temperature"] = 3
    request["messages"][0]["content"] = " "
    del request["messages"][3]
    expected = {"temperature.range", "content.empty", "pairing.missing"}
    assert rules_of(validate_chat_request(request)) == expected
