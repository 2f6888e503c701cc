"""Secrets in text: those that are known, and those that look like one. H7-4"""

from __future__ import annotations

import pytest

from vaala.models.secret import Secret
from vaala.telemetry.limits import SECRETS_KNOWN_MAX
from vaala.telemetry.redact import Redactor, secrets_of
from vaala_protocol.methods.runtime import ClientEnvironment


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("key abc123 here", "key *** here"),
        ("Authorization: Bearer xyz.1-2_3", "Authorization: ***"),
        ("authorization: xyz", "authorization: ***"),
        ("{'Authorization': 'Bearer xyz'}", "{'Authorization': '***'}"),
        ("[(b'authorization', b'Bearer xyz'), (b'x', b'y')]",
         "[(b'authorization', b'***'), (b'x', b'y')]"),
        ('{"api_key": "xyz", "model": "m"}', '{"api_key": "***", "model": "m"}'),
        ("x-api-key: xyz\r\nhost: h", "x-api-key: ***\r\nhost: h"),
        ("GET /?a=1&token=xyz&b=2 HTTP/1.1", "GET /?a=1&token=***&b=2 HTTP/1.1"),
        ("/web/v1/#ticket=xyz", "/web/v1/#ticket=***"),
        ("api_key=xyz, mode=ask", "api_key=***, mode=ask"),
        ("OPENAI_API_KEY=xyz", "OPENAI_API_KEY=***"),
        ("password=hunter2;", "password=***;"),
        ("sent Bearer abcdefgh to it", "sent Bearer *** to it"),
        ("Cookie: vaala=xyz; other=1", "Cookie: ***"),
        ("set-cookie: vaala=xyz; HttpOnly", "set-cookie: ***"),
        ("https://user:pass@host/v1", "https://***@host/v1"),
        ("Incorrect API key: sk-abcdefghijklmnop", "Incorrect API key: ***"),
    ],
)  # fmt: skip
def test_what_is_taken_out(text: str, shown: str) -> None:
    assert Redactor([Secret("abc123")]).redact(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "the token limit is 5, max_tokens=7 of 9 tokens: all used",
        "a bearer of news", "basic use", "https://host/v1?q=1", "see a@b.example",
        "conversation 019b: crashed", "the secret of it", "x",
    ],
)  # fmt: skip
def test_what_stays(text: str) -> None:
    assert Redactor([Secret("x")]).redact(text) == text


def test_variables_that_hold_secrets_are_known_by_their_names() -> None:
    environ = {"TEAM_API_KEY": "plain-words", "GH_TOKEN": "other-words", "PATH": "/usr/bin"}
    shown = Redactor(secrets_of(environ)).redact("plain-words and other-words in /usr/bin")
    assert shown == "*** and *** in /usr/bin"


def test_a_long_text_costs_no_more_than_its_length() -> None:
    """Backtracking over 16 KiB would take minutes, and the test's time would be over."""
    redactor = Redactor([Secret("abc123")])
    for text in ("x" * 16_384, "token" * 3_000, "token   " * 2_000, "://" * 5_000, "sk-" * 5_000):
        assert redactor.redact(text)


def test_the_newest_secrets_of_clients_are_known_and_all_own_ones() -> None:
    redactor = Redactor([Secret("given-secret")])
    redactor.know([Secret("config-secret")])
    for number in range(SECRETS_KNOWN_MAX + 1):
        redactor.learn([Secret(f"client-{number:05}")])
    redactor.learn([Secret("client-00001")])  # told again
    redactor.learn([Secret("one-more-secret")])
    text = "given-secret config-secret client-00000 client-00001 client-00002 client-01000"
    assert redactor.redact(text) == "*** *** client-00000 *** client-00002 ***"


def test_an_environment_in_a_traceback_shows_no_key() -> None:
    said = ClientEnvironment(directory="/w", keys={"A_KEY": "plain"}, overlay={"GH": "word"})
    assert repr(said) == "ClientEnvironment(directory='/w')"
