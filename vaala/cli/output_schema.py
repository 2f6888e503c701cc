"""`vaala run --output-schema`: reads the schema, and prints documents that match it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from vaala.cli.exits import UNREACHABLE, USAGE, CommandFailed
from vaala.cli.output import STDOUT, Output
from vaala.cli.text_view import TextView
from vaala.limits import OUTPUT_SCHEMA_BYTES_MAX
from vaala_protocol.state import TurnInfo

_STRING_OR_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')


def read_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of a file; raises `CommandFailed` that names file and place."""
    from vaala.services.schema import fault_of
    from vaala.tools.strict_json import NotStrict, parse_value

    where = f"--output-schema {name}"
    try:
        with Path(name).open("rb") as file:
            data = file.read(OUTPUT_SCHEMA_BYTES_MAX + 1)
    except OSError as error:
        raise CommandFailed(f"{where}: {error.strerror}", UNREACHABLE) from error
    if len(data) > OUTPUT_SCHEMA_BYTES_MAX:
        text = f"{where}: it has more than {OUTPUT_SCHEMA_BYTES_MAX:,} bytes"
        raise CommandFailed(f"{text}, which each request would carry: make it smaller", USAGE)
    try:
        schema = parse_value(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise CommandFailed(f"{where}: it is not UTF-8 (byte {error.start})", USAGE) from error
    except NotStrict as error:
        raise CommandFailed(f"{where}: it is no JSON: {error}", USAGE) from error
    if (fault := fault_of(schema)) is not None:
        place = ".".join(fault.place) or "the top"
        raise CommandFailed(f"{where}: at {place}: {fault.text}", USAGE)
    assert isinstance(schema, dict)
    return schema


def one_line(document: str) -> str:
    """Return a JSON document without white space outside of its strings; numbers stay as they
    are written."""
    return _STRING_OR_SPACE.sub(lambda found: found[1] or "", document)


class DocumentView(TextView):
    """The document of each prompt as one line on stdout, when its turn has ended well; else
    nothing there. Everything else as `TextView` has it."""

    def __init__(self, root_id: str, output: Output) -> None:
        super().__init__(root_id, output, lambda _: False)
        self._document = output

    def end(self, text: str, turn: TurnInfo, code: int) -> None:
        super().end(text, turn, code)
        if turn.state == "completed" and turn.stop_reason == "end_turn":
            self._document.put(STDOUT, one_line(text) + "\n")
