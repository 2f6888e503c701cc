"""Secrets in text: those that are known, and those that look like one. H7-4"""

from __future__ import annotations

import pytest

from vaala.models.secret import Secret
from vaala.telemetry.redact import Redactor


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
