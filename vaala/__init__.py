"""A local runtime for LLM agents, for use in your own trio program.

    async with vaala.open_runtime(models=model) as runtime:
        conversation = await runtime.create_conversation(directory=".")
        result = await conversation.run("What is in this directory?")

Importing this package is cheap: each name is imported when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vaala.agent.definition import AgentDefinition, Budgets
    from vaala.dao.opening import open_store
    from vaala.embed import open_runtime
    from vaala.handle import ConversationHandle
    from vaala.models.base import Model, ModelFailure
    from vaala.models.provider import Provider
    from vaala.models.set import open_models
    from vaala.permissions.base import Allow, Ask, Deny, PermissionGate, PermissionRequest
    from vaala.runtime import Runtime
    from vaala.tools.base import Tool, ToolContext, ToolFailure, ToolResult
    from vaala.tools.function import tool
    from vaala_protocol.items import ApprovalOption
    from vaala_protocol.settings import Settings
    from vaala_protocol.state import TurnResult

_HOMES = {
    "AgentDefinition": "vaala.agent.definition",
    "Allow": "vaala.permissions.base",
    "ApprovalOption": "vaala_protocol.items",
    "Ask": "vaala.permissions.base",
    "Budgets": "vaala.agent.definition",
    "ConversationHandle": "vaala.handle",
    "Deny": "vaala.permissions.base",
    "Model": "vaala.models.base",
    "ModelFailure": "vaala.models.base",
    "PermissionGate": "vaala.permissions.base",
    "PermissionRequest": "vaala.permissions.base",
    "Provider": "vaala.models.provider",
    "Runtime": "vaala.runtime",
    "Settings": "vaala_protocol.settings",
    "Tool": "vaala.tools.base",
    "ToolContext": "vaala.tools.base",
    "ToolFailure": "vaala.tools.base",
    "ToolResult": "vaala.tools.base",
    "TurnResult": "vaala_protocol.state",
    "open_models": "vaala.models.set",
    "open_runtime": "vaala.embed",
    "open_store": "vaala.dao.opening",
    "tool": "vaala.tools.function",
}

__all__ = [
    "AgentDefinition",
    "Allow",
    "ApprovalOption",
    "Ask",
    "Budgets",
    "ConversationHandle",
    "Deny",
    "Model",
    "ModelFailure",
    "PermissionGate",
    "PermissionRequest",
    "Provider",
    "Runtime",
    "Settings",
    "Tool",
    "ToolContext",
    "ToolFailure",
    "ToolResult",
    "TurnResult",
    "open_models",
    "open_runtime",
    "open_store",
    "tool",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'vaala' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
