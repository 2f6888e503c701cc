"""``spawn_agent`` and ``wait_agent``: work given to a child session."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from msgspec import Meta

from vaala.permissions.base import Access
from vaala.tools import limits
from vaala.tools.base import PreparedCall, ToolContext, ToolFailure, ToolResult
from vaala.tools.declared import DeclaredTool
from vaala.tools.results import noted
from vaala.tools.schema import ToolArguments
from vaala.tools.text import clean, clean_line
from vaala_executors.workspace import Workspace
from vaala_protocol.calls import AgentDetails


class SpawnArguments(ToolArguments, frozen=True):
    task: Annotated[
        str,
        Meta(
            description="Everything it must know; it sees nothing else",
            max_length=limits.TASK_CHARS_MAX,
        ),
    ]
    agent: Annotated[str | None, Meta(description="Which agent; yours by default")] = None


class SpawnAgent(DeclaredTool[SpawnArguments]):
    """The child has the permissions of its parent's mode, so spawning itself touches nothing."""

    def __init__(self) -> None:
        super().__init__(
            "spawn_agent",
            "Start another agent on a task of its own, beside your work. Get its result with "
            "wait_agent.",
            SpawnArguments,
        )

    async def plan(self, arguments: SpawnArguments, workspace: Workspace) -> PreparedCall:
        if not arguments.task.strip():
            raise ToolFailure("spawn_agent was not run: the task is empty")
        task = clean_line(arguments.task, limits.VALUE_TEXT_CHARS_MAX)
        return PreparedCall(
            details=AgentDetails(action="spawn", task=arguments.task),
            title=f"Start agent: {task}",
            access=Access("none"),
            run=partial(_spawn, arguments),
        )


async def _spawn(arguments: SpawnArguments, context: ToolContext) -> ToolResult:
    session_id = await context.agents.spawn(arguments.task, arguments.agent)
    details = AgentDetails(action="spawn", task=arguments.task, session_id=session_id)
    return noted(f"Started session {session_id}.", details=details)


class WaitArguments(ToolArguments, frozen=True):
    session_id: str
    timeout_s: Annotated[float, Meta(ge=0, le=limits.AGENT_WAIT_S_MAX)] = (
        limits.AGENT_WAIT_S_DEFAULT
    )


class WaitAgent(DeclaredTool[WaitArguments]):
    def __init__(self) -> None:
        super().__init__(
            "wait_agent", "Wait for the result of a session that you started.", WaitArguments
        )

    async def plan(self, arguments: WaitArguments, workspace: Workspace) -> PreparedCall:
        return PreparedCall(
            details=AgentDetails(action="wait", session_id=arguments.session_id),
            title=f"Wait for agent {clean_line(arguments.session_id, 40)}",
            access=Access("none"),
            run=partial(_wait, arguments),
        )


async def _wait(arguments: WaitArguments, context: ToolContext) -> ToolResult:
    text = await context.agents.wait(arguments.session_id, arguments.timeout_s)
    return noted(clean(text) or "It ended without a text.")
