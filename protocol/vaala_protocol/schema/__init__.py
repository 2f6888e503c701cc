"""The protocol for programs in other languages: JSON Schema and TypeScript, made from the types.

`vaala.schema.json` and `vaala.d.ts` lie in this folder; ``python -m vaala_protocol.schema`` writes
them anew, and the reference in the README of the source tree.
"""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
JSON_SCHEMA = FOLDER / "vaala.schema.json"
TYPESCRIPT = FOLDER / "vaala.d.ts"
README = FOLDER.parent.parent / "README.md"
"""In a source tree alone; an installed package is without it."""

__all__ = ["JSON_SCHEMA", "README", "TYPESCRIPT"]
