"""What a tool call is about, known before it runs: a closed union, so that clients parse nothing.

Fields that only the run can tell (exit code, diff, sizes) are None until the call has ended.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from vaala_protocol.base import Value


class CommandDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="command"):
    command: str
    cwd: str
    executor: str = "local"
    command_id: str | None = None
    """Names the process while it runs and after; None before it started."""
    background: bool = False
    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    output_bytes: int | None = None
    omitted_bytes: int | None = None
    output_blob: str | None = None
    """The blob with the whole output, when what the item shows was cut."""


class FileChange(Value, frozen=True, kw_only=True):
    path: str
    change: Literal["create", "edit", "delete", "move"]
    diff: str | None = None
    """Unified diff, once made; cut at the limit for diffs."""
    moved_to: str | None = None


class FileChangeDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="file_change"):
    changes: tuple[FileChange, ...]
    executor: str = "local"


class ReadDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="read"):
    path: str
    executor: str = "local"


class SearchDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="search"):
    query: str
    path: str
    executor: str = "local"
    matches: int | None = None


class FetchDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="fetch"):
    url: str
    status: int | None = None


class McpDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="mcp"):
    server: str
    tool: str


class AgentDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="agent"):
    action: Literal["spawn", "wait", "send", "close"]
    task: str = ""
    session_id: str | None = None


class OtherDetails(Value, frozen=True, kw_only=True, tag_field="type", tag="other"):
    title: str


CallDetails: TypeAlias = (
    CommandDetails
    | FileChangeDetails
    | ReadDetails
    | SearchDetails
    | FetchDetails
    | McpDetails
    | AgentDetails
    | OtherDetails
)

CallState: TypeAlias = Literal[
    "waiting", "running", "done", "error", "denied", "cancelled", "unknown"
]
TERMINAL_CALL_STATES = frozenset({"done", "error", "denied", "cancelled", "unknown"})
