"""The bounds of this package, with their units in their names."""

from __future__ import annotations

RESULT_KEPT_BYTES = 1_024
"""What stays of an old result of a call when a history is made shorter."""
RESULT_KEPT_BYTES_MIN = 256
"""The same for results of the last step, when not even they fit."""
LAST_KEPT = 3
"""The newest messages of a person that always stay in requests."""
MESSAGES_KEPT_MAX = 32
"""Messages of a running turn that do."""
STATES_KEPT_MAX = 64
"""Rules, skills, commands, agents and the plan that do."""
KEPT_SHARE = 0.25
"""What all that stays may take of the window, before each of it is shortened."""
MESSAGE_KEPT_BYTES_MIN = 1_024
WHOLE_SHARE = 0.5
"""The part of a shortened history in which results stay whole."""
WORTH_SHARE = 0.1
"""What making a history shorter must save of the window, and how far it must grow before the next
time."""

ANSWER_TOKENS_MIN = 256
"""What an answer may have in any case: the estimate of what is left may be wrong."""
OVERFLOWS_MAX = 2
"""How often one call is made again with a shorter history after it was refused for its length."""
SUMMARY_FAILURES_MAX = 3
"""Summaries of one turn that fail; after these, its history is cut without one."""
SUMMARY_CALLS_MAX = 4
"""Calls for one summary: each reads a part, with the summary of the parts before it."""
SUMMARY_ATTEMPTS_MAX = 2
SUMMARY_S_MAX = 300.0
"""For all calls of one summary."""
SUMMARY_BYTES_MAX = 16 * 1024
SUMMARY_SHARE = 0.1
"""What a summary may take of the window, up to that."""
SUMMARY_TOKENS_MAX = 8_192
"""What a model may write for it, its thoughts included."""
SUMMARY_TOKENS_MIN = 1_024
TRANSCRIPT_SHARE = 0.5
"""What the transcript of one call for a summary takes of the window."""
SAID_BYTES_MAX = 6_000
"""One message in that transcript."""
TOLD_BYTES_MAX = 1_500
"""The arguments or the result of a call in it."""
