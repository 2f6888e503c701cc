"""One mapping from every provider's error to our kinds; retry; what must not be shown."""

from __future__ import annotations

import random
from datetime import datetime

import pytest

from vaala.models.base import ModelFailure
from vaala.models.failures import Origin, failure_in_stream, failure_of_status
from vaala.models.limits import ERROR_TEXT_CHARS_MAX, RETRY_AFTER_S_MAX
from vaala.models.provider import Provider
from vaala.models.retry import RetryPolicy, last_words
from vaala.models.secret import Secret, scrub
from vaala_protocol.base import encode


def kind(status: int, body: object) -> tuple[str, bool]:
    data = body if isinstance(body, bytes) else encode(body)
    failure = failure_of_status(Origin("p"), status, {}, data)
    return failure.kind, failure.retryable


def told(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


OVERFLOWS = [
    (400, told("prompt is too long: 207791 tokens > 200000 maximum", type="invalid_request_error")),
    (400, told("input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000")),
    (413, told("Request exceeds the maximum size", type="request_too_large")),
    (400, told("x", code="context_length_exceeded")),
    (400, told("The input token count (1200293) exceeds the maximum number of tokens allowed.")),
    (400, [{"error": {"code": 400, "message": "The input token count exceeds the maximum"}}]),
    (400, {"object": "error", "message": "maximum context length is 6048", "code": 400}),
    (400, told("max_tokens must be at least 1, got -186.")),
    (400, told("request (9 tokens) exceeds the available context size (5 tokens)",
               type="exceed_context_size_error")),
    (500, told("context shift is disabled", type="server_error")),
    (400, {"error": "The number of tokens to keep is greater than the context length (n_keep: 1)"}),
    (400, {"code": "Client specified an invalid argument",
           "error": "This model's maximum prompt length is 131072 but the request"}),
    (400, told("Please reduce the length of the messages or completion.")),
    (422, told("Prompt contains 9 tokens, too large for model with 5 maximum context length")),
    (422, told("`inputs` tokens + `max_new_tokens` must be <= 4096")),
    (413, b""),
    (400, told("Your input exceeds the context window of this model.")),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body"), OVERFLOWS)
def test_context_overflow(status: int, body: object) -> None:
    assert kind(status, body) == ("context_overflow", False)


OTHERS = [
    (429, told("ThrottlingException: Too many tokens, please wait before trying again."),
     ("rate_limit", True)),
    (413, told("Request too large on tokens per minute (TPM): Limit 6000", type="tokens",
               code="rate_limit_exceeded"), ("rate_limit", False)),
    (429, told("You exceeded your current quota", code="insufficient_quota"), ("billing", False)),
    (400, told("Your credit balance is too low"), ("billing", False)),
    (402, b"", ("billing", False)),
    (401, told("x", code="invalid_api_key"), ("auth", False)),
    (400, told("API key not valid. Please pass a valid API key."), ("auth", False)),
    (403, told("x", type="permission_error"), ("auth", False)),
    (403, told("Input was flagged", metadata={"reasons": ["x"]}), ("refused", False)),
    (400, told("x", code="content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
     ("refused", False)),
    (404, told("x", code="model_not_found"), ("invalid_request", False)),
    (400, told("missing thought_signature"), ("invalid_request", False)),  # A7-4
    (408, b"", ("network", True)),
    (407, b"", ("network", False)),  # B10-4
    (425, b"", ("network", True)),
    (409, b"", ("overloaded", True)),
    (529, told("Overloaded", type="overloaded_error"), ("overloaded", True)),
    (503, told("Loading model", type="unavailable_error"), ("overloaded", True)),
    (401, {"detail": "Unauthorized"}, ("auth", False)),
    (418, b"\xff\xfe", ("invalid_request", False)),
    (500, b"[[[[", ("overloaded", True)),
    (400, b"[]", ("invalid_request", False)),
    (400, b"7", ("invalid_request", False)),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "expected"), OTHERS)
def test_kinds(status: int, body: object, expected: tuple[str, bool]) -> None:
    assert kind(status, body) == expected


IN_STREAM = [
    (told("Overloaded", type="overloaded_error"), ("overloaded", True)),
    (told("slow", code="rate_limit_exceeded"), ("rate_limit", True)),
    (told("x", code="context_length_exceeded"), ("context_overflow", False)),
    (told("x", code=401), ("auth", False)),
    (told("x", code="429"), ("rate_limit", True)),
    (told("x", type="invalid_request_error"), ("invalid_request", False)),
    (told("x", type="invalid_request_error", code="tool_use_failed", status_code=400),
     ("incomplete", True)),
    (told("boom"), ("incomplete", True)),
    ({"code": 500, "message": "x", "type": "server_error"}, ("overloaded", True)),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), IN_STREAM)
def test_kinds_in_a_stream(body: object, expected: tuple[str, bool]) -> None:
    failure = failure_in_stream(Origin("p"), encode(body))
    assert (failure.kind, failure.retryable) == expected


def test_messages_are_one_clean_short_line() -> None:
    body = encode(told("two\nlines \x1b[31mred\x00 " + "x" * 10_000))
    failure = failure_of_status(Origin("p"), 400, {}, body)
    assert failure.message.isprintable()
    assert failure.message.startswith("p: the request was refused (HTTP 400): two lines [31mred")
    assert len(failure.message) < ERROR_TEXT_CHARS_MAX + 60


def test_secrets_are_scrubbed() -> None:
    secrets = (Secret("topsecret-1"), Secret("x"))
    body = encode(told("bad topsecret-1 and sk-proj-abcdefghijklmnop, xerox"))
    failure = failure_of_status(Origin("p", secrets), 401, {}, body)
    assert failure.message.endswith("bad *** and ***, xerox")
    assert scrub("Incorrect API key provided: sk-abcd********wxyz.") == (
        "Incorrect API key provided: ***"
    )


def test_a_secret_hides_itself() -> None:
    secret = Secret("hunter2-hunter2")
    provider = Provider("p", "http://x", key=secret, headers={"x-key": secret})
    for text in (repr(secret), str(secret), f"{secret}", repr(provider), repr([secret])):
        assert "hunter2" not in text
    assert secret == Secret("hunter2-hunter2")
    assert secret != Secret("other")
    assert provider.secrets == (secret, secret)


def failed(*, retryable: bool = True, retry_after_s: float | None = None) -> ModelFailure:
    return ModelFailure("overloaded", "p: busy", retryable=retryable, retry_after_s=retry_after_s)


def test_back_off_doubles_with_jitter_up_to_its_maximum() -> None:
    policy = RetryPolicy()
    for failures, most in [(1, 1.0), (2, 2.0), (3, 4.0), (5, 16.0), (6, 30.0), (4000, 30.0)]:
        waits = [policy.wait_s(failed(), failures, random.Random(seed)) for seed in range(50)]
        assert all(most / 2 <= wait <= most for wait in waits)
        assert len(set(waits)) == 50


def test_retry_after_is_a_lower_bound() -> None:  # B4-1
    for seed in range(200):
        for failures in range(1, 6):
            wait = RetryPolicy().wait_s(failed(retry_after_s=7), failures, random.Random(seed))
            assert 7 <= wait <= 7 + 15


def test_those_refused_together_do_not_come_back_together() -> None:  # B4-5
    rng = random.Random(1)
    waits = [RetryPolicy().wait_s(failed(retry_after_s=7), 1, rng) for _ in range(10)]
    assert len(set(waits)) == 10


def test_what_cannot_be_retried_is_not() -> None:  # B4-3
    assert not RetryPolicy().allows(failed(retryable=False), 1, 0)


def test_budgets_of_attempts_and_of_time() -> None:
    policy = RetryPolicy(attempts_max=3, elapsed_max_s=100)
    assert policy.allows(failed(), 2, 100)
    assert not policy.allows(failed(), 3, 0)
    assert not policy.allows(failed(), 1, 100.1)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"retry-after": "9" * 300}, b"{}"),
        ({}, b'{"error":{"details":[{"retryDelay":"' + b"9" * 400 + b's"}]}}'),
    ],
)
def test_a_wait_without_end_is_told_as_a_month(headers: dict[str, str], body: bytes) -> None:
    failure = failure_of_status(Origin("p"), 429, headers, body)
    assert failure.retry_after_s == RETRY_AFTER_S_MAX
    told = last_words(failure, 1, datetime(2026, 11, 30, 12, 0, 0))
    assert told.endswith("; try again at 2026-12-30 12:00")


def test_a_long_wait_is_told_and_not_slept() -> None:  # B4-2
    noon = datetime(2026, 11, 30, 12, 0, 0)
    assert last_words(failed(retry_after_s=3600), 1, noon) == "p: busy; try again at 13:00:00"
    assert last_words(failed(retry_after_s=86400), 2, noon) == (
        "p: busy (tried 2 times); try again at 2026-12-01 12:00"
    )
    assert last_words(failed(), 6, noon) == "p: busy (tried 6 times)"
    assert last_words(failed(retryable=False, retry_after_s=9), 1, noon) == "p: busy"
