"""Conversations on disk: `vaala.dao.opening` opens stores, `vaala.dao.store` is what they offer.

Nothing is imported here, so that the parts which know only the format stay cheap to import.
"""
