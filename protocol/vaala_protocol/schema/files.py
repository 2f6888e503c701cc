"""Which files are generated, and what must be in them."""

from __future__ import annotations

import json
from pathlib import Path

from vaala_protocol.schema import JSON_SCHEMA, README, TYPESCRIPT
from vaala_protocol.schema.json_schema import schema
from vaala_protocol.schema.reference import BEGIN, with_reference
from vaala_protocol.schema.typescript import declarations


def generated() -> dict[Path, str]:
    """Return the files and their texts; the README only where it is the one of this package."""
    made = {
        JSON_SCHEMA: json.dumps(schema(), ensure_ascii=False, indent=2) + "\n",
        TYPESCRIPT: declarations(),
    }
    if README.is_file() and BEGIN in (text := README.read_text("utf-8")):
        made[README] = with_reference(text)
    return made
