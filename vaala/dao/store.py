"""The face of persistence: what the runtime and the front ends use of `vaala.dao`."""

from vaala.dao.conversation_log import ConversationLog
from vaala.dao.errors import BadArchive, NewerFormat, ReadOnlyStore, StoreLocked
from vaala.dao.opening import open_memory_store, open_store, open_store_readonly
from vaala.dao.owner import Store
from vaala.dao.pages import ReindexReport, StepPage, TurnPage
from vaala.dao.reader import Reader
from vaala.dao.session_log import SessionLog
from vaala_protocol.pages import (
    ConversationPage,
    ConversationRow,
    ItemPage,
    ListQuery,
    SearchPage,
    SearchResult,
)

__all__ = [
    "BadArchive",
    "ConversationLog",
    "ConversationPage",
    "ConversationRow",
    "ItemPage",
    "ListQuery",
    "NewerFormat",
    "ReadOnlyStore",
    "Reader",
    "ReindexReport",
    "SearchPage",
    "SearchResult",
    "SessionLog",
    "StepPage",
    "Store",
    "StoreLocked",
    "TurnPage",
    "open_memory_store",
    "open_store",
    "open_store_readonly",
]
