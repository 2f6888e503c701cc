"""The types of the wire as TypeScript declarations."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS
from vaala_protocol.methods.runtime import PROTOCOL_VERSION
from vaala_protocol.rpc.refusals import NUMBERS
from vaala_protocol.schema.shapes import (
    Alias,
    Annotation,
    Field,
    Shape,
    aliases,
    is_union,
    members,
    method_doc,
    origin_of,
    shapes,
)

_HEAD = f"""\
/**
 * The protocol of vaala, version {PROTOCOL_VERSION}: JSON-RPC 2.0, one message per text frame.
 *
 * Generated from the Python types; `python -m vaala_protocol.schema` writes it anew. A field with a
 * `?` is left out at its default: null, empty, 0 or false where none is told. Times are
 * milliseconds since 1970, UTC. A newer server of the same major version may send more fields,
 * kinds of items and types of events: skip what you do not know.
 */
"""

_MESSAGES = """\
/** What a client asks of the server, by method. */
export type Method = keyof Methods;

/** What the server asks of a client that has offered it, by method. */
export type ClientMethod = keyof ClientMethods;

/** The id of a request, chosen by who asks; the answer has the same. */
export type RequestId = string | number | null;

export interface RequestMessage<M extends Method = Method> {
  jsonrpc: "2.0";
  id: RequestId;
  method: M;
  params: Methods[M]["params"];
}

export interface ClientRequestMessage<M extends ClientMethod = ClientMethod> {
  jsonrpc: "2.0";
  id: number;
  method: M;
  params: ClientMethods[M]["params"];
}

export interface ResultMessage<R = unknown> {
  jsonrpc: "2.0";
  id: RequestId;
  result: R;
}

export interface ErrorMessage {
  jsonrpc: "2.0";
  id: RequestId;
  error: ErrorBody;
}

/** Any notification; `method` tells which `params` it has. */
export type NotificationMessage = {
  [M in keyof Notifications]: { jsonrpc: "2.0"; method: M; params: Notifications[M] };
}[keyof Notifications];
"""


def declarations() -> str:
    """Return the text of ``vaala.d.ts``."""
    parts = [_HEAD]
    for shape in shapes():
        parts.append(_alias(shape) if isinstance(shape, Alias) else _shape(shape))
    parts += [
        _methods("Methods", "What a client asks of the server.", REQUESTS),
        _methods("ClientMethods", "What the server asks of a client.", CLIENT_REQUESTS),
        _notifications(),
        _codes(),
        _MESSAGES,
    ]
    return "\n".join(parts)


def type_text(annotation: Annotation) -> str:
    """Return a type in TypeScript, as in ``Record<string, Usage>``."""
    if annotation in aliases():
        return aliases()[annotation]
    if is_union(annotation):
        return " | ".join(map(type_text, members(annotation)))
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, arguments = origin_of(annotation), get_args(annotation)
    if origin is Literal:
        return " | ".join(map(json.dumps, arguments))
    if origin is tuple:
        item = type_text(arguments[0])
        return f"({item})[]" if " | " in item else f"{item}[]"
    if origin is dict:
        return f"Record<string, {type_text(arguments[1])}>"
    if not inspect.isclass(annotation):
        raise TypeError(f"{annotation} has no TypeScript: add it here")
    return annotation.__name__


_USUAL: tuple[Any, ...] = (None, "", [], {}, False, 0)
"""Defaults that need no word."""

_PLAIN: dict[Annotation, str] = {
    str: "string", int: "number", float: "number", bool: "boolean", Any: "unknown",
    types.NoneType: "null",
}  # fmt: skip


def _alias(alias: Alias) -> str:
    write = json.dumps if origin_of(alias.type) is Literal else type_text
    texts = [write(part) for part in members(alias.type)]
    line = f"export type {alias.name} = {' | '.join(texts)};\n"
    if len(line) <= 100:
        return line
    return f"export type {alias.name} =\n" + "\n".join(f"  | {text}" for text in texts) + ";\n"


def _shape(shape: Shape) -> str:
    lines = list(_comment(shape.doc, ""))
    extends = f" extends {shape.base}" if shape.base else ""
    if not shape.fields and shape.tag is None:
        return "\n".join([*lines, f"export type {shape.name} = Record<string, never>;", ""])
    lines.append(f"export interface {shape.name}{extends} {{")
    if shape.tag is not None:
        lines.append(f"  {shape.tag_field}: {json.dumps(shape.tag)};")
    for field in shape.own:
        lines += _field(field)
    return "\n".join([*lines, "}", ""])


def _field(field: Field) -> Iterator[str]:
    doc = field.doc
    if not field.required and field.default not in _USUAL:
        shown = json.dumps(field.default, ensure_ascii=False)
        doc = f"{doc}\nDefault: {shown}".strip()
    yield from _comment(doc, "  ")
    mark = "" if field.required else "?"
    yield f"  {field.name}{mark}: {type_text(field.type)};"


def _methods(name: str, doc: str, kinds: Iterable[Any]) -> str:
    lines = [*_comment(doc, ""), f"export interface {name} {{"]
    for kind in kinds:
        lines += _comment(method_doc(kind), "  ")
        lines.append(
            f'  "{kind.method}": {{ params: {kind.__name__}; result: {kind.result.__name__} }};'
        )
    return "\n".join([*lines, "}", ""])


def _notifications() -> str:
    lines = ["/** What the server tells a client. */", "export interface Notifications {"]
    for kind in NOTIFICATIONS:
        lines += _comment(method_doc(kind), "  ")
        lines.append(f'  "{kind.method}": {kind.__name__};')
    return "\n".join([*lines, "}", ""])


def _codes() -> str:
    texts = [f"  | {json.dumps(kind.code)}" for kind in NUMBERS]
    head = "/** The kinds of errors; a newer server may have more. */\nexport type ErrorCode =\n"
    return head + "\n".join(texts) + ";\n"


def _comment(doc: str, indent: str) -> Iterator[str]:
    lines = doc.replace("*/", "*\u200b/").split("\n") if doc else []
    if len(lines) == 1:
        yield f"{indent}/** {lines[0]} */"
    elif lines:
        yield f"{indent}/**"
        yield from (f"{indent} * {line}".rstrip() for line in lines)
        yield f"{indent} */"
