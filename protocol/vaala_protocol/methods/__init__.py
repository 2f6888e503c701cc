"""Every method and notification of the protocol, by name."""

from __future__ import annotations

from typing import Any

from vaala_protocol.methods import (
    catalog,
    client,
    command,
    conversation,
    decisions,
    runtime,
    session,
)
from vaala_protocol.methods.base import Done, Notification, Request

REQUESTS: tuple[type[Request[Any]], ...] = (
    runtime.InitializeParams,
    runtime.RuntimeStatusParams,
    runtime.RuntimeSubscribeParams,
    runtime.RuntimeUnsubscribeParams,
    runtime.RuntimeUsageParams,
    runtime.ReloadParams,
    runtime.ShutdownParams,
    conversation.ConversationCreateParams,
    conversation.ConversationListParams,
    conversation.ConversationSearchParams,
    conversation.ConversationGetParams,
    conversation.ConversationUsageParams,
    conversation.ConversationSubscribeParams,
    conversation.ConversationUnsubscribeParams,
    conversation.ConversationRenameParams,
    conversation.ConversationUpdateParams,
    conversation.ConversationArchiveParams,
    conversation.ConversationForkParams,
    conversation.ConversationDeleteParams,
    conversation.ConversationExportParams,
    conversation.ConversationImportParams,
    session.SessionSendParams,
    session.SessionInterruptParams,
    session.SessionResumeParams,
    session.SessionCompactParams,
    session.SessionItemsParams,
    session.SessionTurnParams,
    session.SessionEditInputParams,
    session.SessionWithdrawInputParams,
    session.SessionMoveInputParams,
    session.SessionConfigureParams,
    decisions.ApprovalAnswerParams,
    decisions.QuestionAnswerParams,
    command.CommandListParams,
    command.CommandOutputParams,
    command.CommandWriteParams,
    command.CommandResizeParams,
    command.CommandKillParams,
    client.ClientEnvironmentParams,
    client.ClientOfferParams,
    client.ClientWithdrawParams,
    catalog.ModelListParams,
    catalog.ModelGetParams,
    catalog.ModelResolveParams,
    catalog.AgentListParams,
    catalog.AgentGetParams,
    catalog.ExecutorListParams,
    catalog.ExecutorGetParams,
    catalog.ConfigListParams,
    catalog.ConfigGetParams,
    catalog.ConfigSetParams,
)
"""What a client asks of the server."""

CLIENT_REQUESTS: tuple[type[Request[Any]], ...] = (
    client.FileReadParams,
    client.FileWriteParams,
    client.ToolRunParams,
    client.ElicitParams,
    client.TerminalStartParams,
    client.TerminalOutputParams,
    client.TerminalEndParams,
)
"""What the server asks of a client that has offered it."""

NOTIFICATIONS: tuple[type[Notification], ...] = (
    conversation.EventNotification,
    conversation.ResyncNotification,
    conversation.ClosedNotification,
    runtime.RuntimeEventNotification,
    runtime.RuntimeResyncNotification,
    runtime.NoticeNotification,
    client.ClientCancelNotification,
)
"""What the server tells a client."""

__all__ = ["CLIENT_REQUESTS", "NOTIFICATIONS", "REQUESTS", "Done", "Notification", "Request"]
