"""The schemas that are shipped are those of the types, and true of what is sent."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.protocol.generated import values
from vaala_protocol.base import decode, encode
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.schema import JSON_SCHEMA, TYPESCRIPT
from vaala_protocol.schema.files import generated
from vaala_protocol.schema.json_schema import schema
from vaala_protocol.schema.shapes import Shape, shapes

ASKED: tuple[Any, ...] = (*REQUESTS, *CLIENT_REQUESTS)
SENT: tuple[Any, ...] = tuple({*ASKED, *(kind.result for kind in ASKED), *NOTIFICATIONS})
SCHEMA = schema()
DEFINITIONS: dict[str, Any] = SCHEMA["$defs"]
TYPES: dict[str, type[Any] | tuple[type[Any], ...]] = {
    "string": str, "integer": int, "boolean": bool, "null": type(None), "array": list,
    "object": dict,
}  # fmt: skip


@pytest.mark.parametrize("path", generated(), ids=lambda path: path.name)
def test_what_is_generated_is_current(path: Path) -> None:
    wanted = generated()[path]
    assert path.read_text("utf-8") == wanted, "run: python -m vaala_protocol.schema"


def test_the_readme_is_among_what_is_generated() -> None:
    assert {path.name for path in generated()} == {"README.md", JSON_SCHEMA.name, TYPESCRIPT.name}


def _faults(value: Any, rule: dict[str, Any]) -> list[str]:
    """Check a value as a JSON Schema says, with the keywords that ours uses; return the faults."""
    if "$ref" in rule:
        return _faults(value, DEFINITIONS[rule["$ref"].removeprefix("#/$defs/")])
    if "anyOf" in rule and all(_faults(value, option) for option in rule["anyOf"]):
        return [f"{value!r} is none of {len(rule['anyOf'])}"]
    if "const" in rule and value != rule["const"]:
        return [f"{value!r} is not {rule['const']!r}"]
    if "enum" in rule and value not in rule["enum"]:
        return [f"{value!r} is not one of {rule['enum']}"]
    if "type" in rule and not _is_of(value, rule["type"]):
        return [f"{value!r} is no {rule['type']}"]
    faults = [f"{name} is missing" for name in rule.get("required", ()) if name not in value]
    for name, inner in value.items() if isinstance(value, dict) else ():
        inner_rule = rule.get("properties", {}).get(name, rule.get("additionalProperties"))
        if inner_rule is None and "properties" in rule:
            faults.append(f"{name} is not known")
        faults += [f"{name}: {fault}" for fault in _faults(inner, inner_rule or {})]
    if "items" in rule:
        faults += [fault for item in value for fault in _faults(item, rule["items"])]
    return faults


def _is_of(value: Any, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _without_private(value: Any) -> Any:
    """Return what the server would send of a generated value."""
    if isinstance(value, dict):
        return {name: _without_private(one) for name, one in value.items() if name != "private"}
    return [_without_private(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("kind", SENT, ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_what_is_sent_fits_the_schema(kind: type[Any], data: st.DataObject) -> None:
    value = decode(encode(data.draw(values(kind))))
    if "unknownType" in json.dumps(value):
        return  # only a client makes these, of what it does not know
    assert _faults(_without_private(value), DEFINITIONS[kind.__name__]) == []


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("SessionSendParams", {"conversationId": "c", "clientId": "x"}, "content is missing"),
        ("TextContent", {"type": "text", "text": 5}, "text: 5 is no string"),
        ("TextContent", {"text": "x"}, "type is missing"),
        ("Settings", {"mode": "yolo"}, "mode: 'yolo' is none of 2"),
        ("Done", {"more": 1}, "more is not known"),
        ("Content", {"type": "song"}, "{'type': 'song'} is none of 3"),
    ],
)
def test_the_schema_refuses_what_does_not_fit(name: str, value: Any, fault: str) -> None:
    assert _faults(value, DEFINITIONS[name]) == [fault]


@pytest.mark.parametrize("kind", SENT, ids=lambda kind: kind.__name__)
def test_names_and_defaults_are_those_that_msgspec_knows(kind: type[Any]) -> None:
    _, theirs = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    for name, rule in theirs.items():
        if name in ("Private", "UnknownEvent"):
            continue
        ours = DEFINITIONS[name]
        wanted = {
            field: about.get("default", "required")
            for field, about in rule["properties"].items()
            if field != "private"
        }
        shown = {
            field: about.get("default", "required") for field, about in ours["properties"].items()
        }
        assert shown == decode(encode(wanted))
        assert set(ours["required"]) >= set(rule["required"])


def test_every_method_is_in_the_schema() -> None:
    for table, kinds in (("methods", REQUESTS), ("clientMethods", CLIENT_REQUESTS)):
        assert list(SCHEMA[table]) == [kind.method for kind in kinds]
        for kind in kinds:
            entry = SCHEMA[table][kind.method]
            assert entry["params"] == {"$ref": f"#/$defs/{kind.__name__}"}
            assert entry["result"] == {"$ref": f"#/$defs/{kind.result.__name__}"}
            assert entry["description"]
    assert list(SCHEMA["notifications"]) == [kind.method for kind in NOTIFICATIONS]


def test_every_reference_leads_somewhere() -> None:
    names = re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA))
    assert set(names) <= set(DEFINITIONS)


def test_nothing_private_is_in_the_schemas() -> None:
    for text in (json.dumps(SCHEMA), TYPESCRIPT.read_text("utf-8")):
        assert not re.search(r"\bprivate\b|\bPrivate\b", text)


def test_every_type_is_declared_once_in_typescript() -> None:
    declared = re.findall(
        r"^export (?:interface|type) (\w+)", TYPESCRIPT.read_text("utf-8"), re.MULTILINE
    )
    assert len(declared) == len(set(declared))
    assert set(declared) >= {shape.name for shape in shapes()}


PLAIN = {"string", "number", "boolean", "unknown", "null", "never", "Record", "keyof", "in"}


def test_every_name_in_typescript_is_declared() -> None:
    text = re.sub(r"/\*\*.*?\*/", "", TYPESCRIPT.read_text("utf-8"), flags=re.DOTALL)
    declared = set(re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE))
    used = set(re.findall(r"\b[A-Z]\w+", re.sub(r'"[^"\n]*"', "", text)))
    assert used - declared - PLAIN == set()


EXCERPTS = {
    "a method": '  "session/send": { params: SessionSendParams; result: InputInfo };',
    "a client method": '  "client/runTool": { params: ToolRunParams; result: ToolRunResult };',
    "a notification": '  "conversation/event": EventNotification;',
    "a tag": 'export interface ToolCall extends ItemBase {\n  kind: "tool_call";',
    "a union": "export type Content = TextContent | ImageContent | FileContent;",
    "values": 'export type Delivery = "queue" | "steer";',
    "a default": '  /** Default: "queue" */\n  delivery?: Delivery;',
    "a field that may be null": "  mode?: Mode | null;",
    "a table": "  usage?: Record<string, Usage>;",
    "a docstring of a class": "/** Make a conversation. Nothing of it is on disk before",
    "a docstring of a field": "  /** Absolute, on the executor. */\n  directory: string;",
    "nothing inside": "export type Done = Record<string, never>;",
    "a list of one of two": "  key?: (string | number)[];",
    "an error": '  | "not_pending"',
}


@pytest.mark.parametrize("text", EXCERPTS.values(), ids=EXCERPTS)
def test_typescript_reads_as_it_should(text: str) -> None:
    assert text in TYPESCRIPT.read_text("utf-8")


def test_shapes_hold_what_their_bases_have() -> None:
    by_name = {shape.name: shape for shape in shapes() if isinstance(shape, Shape)}
    for shape in by_name.values():
        if shape.base is not None:
            inherited = [field.name for field in by_name[shape.base].fields]
            assert {field.name for field in shape.fields} == {
                *inherited, *(field.name for field in shape.own)
            }  # fmt: skip
