"""A model at a server on loopback, to be asked."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from vaala.models.base import Model, ModelEvent, ModelFailure, ModelRequest
from vaala.testing import ChatServer


@dataclass(frozen=True)
class Asked:
    server: ChatServer
    model: Model
    usual: ModelRequest
    """What is sent where a test names no request."""

    async def run(self, request: ModelRequest | None = None) -> list[ModelEvent]:
        async with self.model.stream(request or self.usual) as events:
            return [event async for event in events]

    async def fails(self, request: ModelRequest | None = None) -> ModelFailure:
        with pytest.raises(ModelFailure) as caught:
            await self.run(request)
        return caught.value
