"""`UsageData`: what was used, from the data itself, where no server runs."""

from __future__ import annotations

from msgspec import Struct

from vaala.config.keeper import Keeper
from vaala.dao.reader import Reader
from vaala.models.catalogue.facts import Known
from vaala.usage import conversation_usage, usage_page
from vaala_protocol.usage import ConversationSpent, UsagePage

_PAGE = 50


class UsageData(Struct, frozen=True):
    reader: Reader
    keeper: Keeper

    async def one(self, conversation_id: str, since: int | None) -> ConversationSpent:
        return await conversation_usage(self.reader, conversation_id, self._known, since)

    async def page(self, since: int | None, cursor: str | None) -> UsagePage:
        return await usage_page(self.reader, self._known, since, cursor, _PAGE)

    def _known(self, model: str) -> Known:
        return self.keeper.known(model, {})
