"""The bounds of this wire format, with their units in their names."""

from __future__ import annotations

NAME_CHARACTERS_MAX = 64
"""Of a function. Newer references allow 128 and dots, older ones neither
(cloud.google.com/vertex-ai/generative-ai/docs/reference, FunctionDeclaration.name)."""

ARGUMENTS_DEPTH_MAX = 64
"""Objects and arrays inside each other in the arguments of a past call: the reader of JSON that
Google's servers share gives up at 100, and the request itself has some
(github.com/protocolbuffers/protobuf, JsonFormat, recursion limit)."""

SIGNATURES_BYTES_MAX = 256 * 1024
"""Signatures that are kept with an answer; what comes later is left out. The entry of the log that
holds them has room for four times as much."""

PARTS_MAX = 2_048
"""Parts of an answer whose order is kept; one with more is sent back as text and calls."""

SCHEMA_DEPTH_MAX = 24
"""Schemas inside each other; what lies deeper may be anything."""

SCHEMA_NODES_MAX = 2_000
"""Schemas in the parameters of one tool, references written out; what comes later may be anything.
"""

PATH_KEYS_MAX = 64
"""Names and indices in one path of streamed arguments."""
