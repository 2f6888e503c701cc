"""Requests as the chat-completions client sends them, and the strict reading of them."""

from __future__ import annotations

import json
from typing import Any

from vaala.agent.history import History
from vaala.models.base import ModelRequest
from vaala.models.chat.encode import Dialect, request_body
from vaala.models.chat.model import ChatClient, ChatModel
from vaala.models.http import Http
from vaala.models.provider import Provider
from vaala.package import Package
from vaala.testing.validators import validate_chat_request
from vaala_protocol.items import Item


def chat_model() -> ChatModel:
    """Return a model that encodes; nothing is sent."""
    provider = Provider(name="local", base_url="http://127.0.0.1:1/v1")
    return ChatModel(ChatClient(provider, Http({}, Package())), "small")


def body_of(history: History, open_items: list[Item]) -> bytes:
    """Return the body of the request that a turn would send now."""
    closed, messages = history.request(open_items)
    request = ModelRequest("You help.", (), closed, messages)
    return request_body(request, "small", Dialect())


def complaints(body: bytes) -> list[str]:
    return [f"{found.rule} {found.path}: {found.message}" for found in validate_chat_request(body)]


def messages_in(body: bytes) -> list[dict[str, Any]]:
    """Return the messages after the system prompt; the body must be without a fault."""
    assert complaints(body) == []
    messages: list[dict[str, Any]] = json.loads(body)["messages"]
    return messages[1:]
