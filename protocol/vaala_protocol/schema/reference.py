"""The part of the README that tells every method, notification and event, made from the types."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from vaala_protocol.events import Event
from vaala_protocol.items import Item
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.methods.runtime import RuntimeEvent
from vaala_protocol.schema.shapes import Field, fields_of, members, method_doc
from vaala_protocol.schema.typescript import type_text

BEGIN = "<!-- generated: python -m vaala_protocol.schema -->"
END = "<!-- end of what is generated -->"
_PART = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
_WIDTH = 98


def with_reference(readme: str) -> str:
    """Return the README with its generated part written anew; raises `ValueError` without one."""
    made = f"{BEGIN}\n\n{reference()}\n{END}"
    filled, count = _PART.subn(lambda _: made, readme)
    if count != 1:
        raise ValueError(f"the text needs one part between {BEGIN!r} and {END!r}, it has {count}")
    return filled


def reference() -> str:
    lines = ["### Methods of the server", ""]
    lines += _methods(REQUESTS)
    lines += ["", "### Methods of a client", "", *_methods(CLIENT_REQUESTS), ""]
    lines += ["### Notifications of the server", ""]
    for note in NOTIFICATIONS:
        lines += _entry(note.method, fields_of(note), "", method_doc(note))
    lines += ["", "### Events of a conversation", "", *_tagged(members(Event)), ""]
    lines += ["### Events of the runtime", "", *_tagged(members(RuntimeEvent)), ""]
    lines += ["### Kinds of items", "", *_items()]
    return "\n".join(lines) + "\n"


def _methods(kinds: Iterable[Any]) -> Iterator[str]:
    for kind in kinds:
        yield from _entry(kind.method, fields_of(kind), kind.result.__name__, method_doc(kind))


def _tagged(kinds: Iterable[Any]) -> Iterator[str]:
    for kind in kinds:
        yield from _entry(kind.__struct_config__.tag, fields_of(kind), "", method_doc(kind))


def _items() -> Iterator[str]:
    """Yield the kinds of items; their fields would fill as many lines again."""
    for kind in members(Item):
        yield from _wrapped(f"- **`{kind.__struct_config__.tag}`**: {method_doc(kind)}")


def _entry(name: str, fields: Iterable[Field], result: str, doc: str) -> list[str]:
    shown = ", ".join(map(_field, fields))
    arrow = f" → `{result}`" if result else ""
    return _wrapped(f"- **`{name}`** `{{{shown}}}`{arrow}. {doc}")


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )


def _field(field: Field) -> str:
    mark = "" if field.required else "?"
    default = json.dumps(field.default) if field.default else ""
    shown = f" = {default}" if default and not field.required else ""
    return f"{field.name}{mark}: {type_text(field.type)}{shown}"
