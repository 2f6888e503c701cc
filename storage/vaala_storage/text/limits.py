"""Every limit of searching, with its unit in its name."""

from __future__ import annotations

TOKEN_CHARS_MAX = 64
"""A longer word (base64, a hash) is found by its first characters."""

FIELD_CHARS_MAX = 1 << 18
"""Of a longer text the beginning is indexed; it bounds what one document can cost."""

QUERY_CHARS_MAX = 1000
QUERY_WORDS_MAX = 32
"""What a query has beyond these is not looked at."""

SNIPPET_CHARS_MAX = 160
SNIPPET_LEAD_CHARS = 40
"""How much of a snippet stands before the match."""

CLUSTER_MARKS_MAX = 16
"""Combining marks taken together with one character; real text has one to four."""
