"""The bounds of this package, with their units in their names."""

from __future__ import annotations

SSE_EVENT_BYTES_MAX = 8 * 1024 * 1024
"""One event of a stream; an answer in a single event, arguments of a large file included."""

ANSWER_BYTES_MAX = 32 * 1024 * 1024
"""A whole answer that came as one JSON document."""

SCHEMA_DEPTH_MAX = 32
"""Levels of a tool's parameters; what is deeper becomes "anything". Parsers of servers stop at
about 128 levels of JSON, and a level of a schema has up to three."""

OUTPUTS_REMEMBERED_MAX = 256
"""Schemas of answers, by model, that a server refused."""

CALLS_PER_ANSWER_MAX = 256
"""Tool calls in one answer; more is a model that runs in circles."""

ERROR_BODY_BYTES_MAX = 64 * 1024
ERROR_TEXT_CHARS_MAX = 400
"""What an error message quotes of a provider's text."""

RETRY_AFTER_S_MAX = 30 * 24 * 3600.0
"""A longer wait that a provider asks for is told as this one."""

CONNECTIONS_PER_ORIGIN_MAX = 512
CONNECTIONS_IDLE_PER_ORIGIN_MAX = 32
CONNECTION_IDLE_S = 60.0
POOL_WAIT_S = 120.0
"""How long a request waits for a connection while all are in use."""

SAT_THROUGH_S = 300.0
"""No call waits longer for a provider that refuses: a person is not kept waiting for more than
five minutes by something that is not shown as an error."""
NOT_REFUSED_S = 2.0
"""A refusal comes at once: a call that has had none for so long is taken for let through, since a
model may think for minutes before the first byte of its answer."""
CALM_S = 60.0
"""How long a refusal is remembered after its wait; limits are mostly for a minute."""
LIMITERS_MAX = 64
"""Limiters that are kept, one for each server and key; those with nothing to do go first."""

CLIENTS_MAX = 64
"""Clients of models that are kept: one for each provider and key. Each is a few hundred bytes; a
new one asks once again what its server can do."""

KEY_WAIT_S = 60.0
"""How long a key's file, command or keyring has to give it: a person may have to unlock it."""
KEY_OUTPUT_BYTES_MAX = 64 * 1024
KEY_OUTPUT_WAIT_S = 1.0
"""How long the output of a key's command that has ended may still come."""
KEY_CHARS_MAX = 16 * 1024
"""A header; tokens of some thousand characters exist."""
KEY_THREADS_MAX = 4

TAIL_S = 5.0
"""How long a finished answer may still bring its usage and its end."""

DRAIN_S = 0.25
"""How long to wait for the end of a finished answer, so that its connection is used again."""

PROBE_S = 0.3
"""How long a local model server has to tell its models."""

LIST_S = 10.0
"""How long a configured server has to tell its models."""

CHOICE_KEPT_S = 60.0
"""How long the model that was found is the default before it is looked for again."""

SCRIPT_BYTES_MAX = 1024 * 1024
SCRIPT_THREADS_MAX = 4
"""Threads that read scripts: those that a dead file system holds up hold up nothing else."""
SCRIPTS_KEPT_MAX = 16
"""Scripts that are kept as they were read."""
SCRIPT_OPERATIONS_MAX = 10_000
"""Branches and loop ends between two answers of a script."""

CATALOGUE_BYTES_MAX = 16 * 1024 * 1024
"""A list of models with their prices; that of OpenRouter has less than a megabyte."""
CATALOGUE_MODELS_MAX = 5_000
MODEL_NAME_CHARS_MAX = 200
TOKENS_MAX = 1_000_000_000
"""A server that says more of a window is mistaken."""
PRICE_USD_MAX = 1_000_000
"""For a million tokens."""
