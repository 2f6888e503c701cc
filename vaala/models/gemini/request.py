"""The body of a request. Whatever it is made of, what comes out is a legal one.

It is put together from bytes: the history is encoded already, so that a long one costs copies of
memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vaala.models.base import ModelFailure, ModelRequest, OutputFormat, ToolSpec
from vaala.models.gemini.encode import encode_messages, joined_contents
from vaala.models.gemini.names import legal_name
from vaala.models.gemini.replay import Owner
from vaala.models.gemini.schema import normalised, open_api
from vaala.models.gemini.thinking import generation, thinking_config
from vaala.models.options import plain
from vaala.models.output import instructions_with, is_object
from vaala.models.wire import json_bytes
from vaala.text import is_blank

_RESERVED = frozenset(
    {"model", "contents", "systeminstruction", "tools", "cachedcontent", "candidatecount"}
)
_OF_THE_REQUEST = frozenset({"safetysettings", "toolconfig", "labels", "servicetier", "store"})
"""Options that are fields of the request; every other one is a field of its ``generationConfig``
(ai.google.dev/api/generate-content)."""
_CONFIG = "generationconfig"


def request_body(
    request: ModelRequest, owner: Owner, model: str, *, json_schema: bool, ask_output: bool = True
) -> bytes:
    """Return the body of a request; ``model`` is the model's name at the provider.

    ``json_schema``: tools and answers are described in JSON Schema, and not in the older form.
    ``ask_output``: an answer that matches a schema is asked for by a field. Raises
    `ModelFailure` of kind ``invalid_request`` for an option that is reserved or an effort that is
    not known.
    """
    fields = _fields(request, model)
    instructions = request.instructions
    if (output := request.output) is not None:
        asked = _output_fields(request, output, model, json_schema=json_schema)
        if asked is not None and ask_output:
            config = fields.setdefault("generationConfig", {})
            fields["generationConfig"] = {**config, **asked}
            if request.tools and not _calls_beside_output(model):
                fields["toolConfig"] = {"functionCallingConfig": {"mode": "NONE"}}
        if asked is None or output.again or not ask_output:
            instructions = instructions_with(instructions, output)
    if not is_blank(instructions):
        fields["systemInstruction"] = {"parts": [{"text": instructions}]}
    if request.tools:
        declarations = declared(request.tools, json_schema=json_schema)
        fields["tools"] = [{"functionDeclarations": declarations}]
    contents = joined_contents([request.history, encode_messages(request.messages, owner)])
    parts = [b'{"contents":[', contents, b"]"]
    for name, value in fields.items():
        parts += [b",", json_bytes(name), b":", json_bytes(value)]
    parts.append(b"}")
    return b"".join(parts)


def declared(tools: Sequence[ToolSpec], *, json_schema: bool) -> list[dict[str, Any]]:
    """Return the tools as function declarations; of two with one name the first."""
    declarations: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name = legal_name(tool.name)
        if name in declarations:
            continue
        described = tool.name if is_blank(tool.description) else tool.description
        declaration: dict[str, Any] = {"name": name, "description": described}
        parameters = normalised(tool.parameters)
        # A function without parameters has no schema: an object without properties was refused.
        if parameters["properties"]:
            key = "parametersJsonSchema" if json_schema else "parameters"
            declaration[key] = parameters if json_schema else open_api(parameters)
        declarations[name] = declaration
    return list(declarations.values())


def _calls_beside_output(model: str) -> bool:
    """Tell whether a model may call functions while its answer has a schema.

    Before generation 3: "Function calling with a response mime type: 'application/json' is
    unsupported"; with the mode NONE it is taken (github.com/google/adk-python/issues/5735).
    """
    version = generation(model)
    return version is not None and version >= (3, 0)


def _output_fields(
    request: ModelRequest, output: OutputFormat, model: str, *, json_schema: bool
) -> dict[str, Any] | None:
    """Return the fields of ``generationConfig`` that ask for a document, None where there are none
    (ai.google.dev/gemini-api/docs/structured-output)."""
    beside = not request.tools or _calls_beside_output(model)
    if not (beside or output.again) or not is_object(output.schema):
        return None
    schema = normalised(output.schema)
    if not schema["properties"]:
        return None
    asked = {"responseJsonSchema": schema} if json_schema else {"responseSchema": open_api(schema)}
    return {"responseMimeType": "application/json", **asked}


def _fields(request: ModelRequest, model: str) -> dict[str, Any]:
    config: dict[str, Any] = {}
    thinking = thinking_config(model, request.effort)
    if thinking is not None:
        config["thinkingConfig"] = thinking
    if request.output_tokens_max is not None:
        config["maxOutputTokens"] = request.output_tokens_max
    fields: dict[str, Any] = {}
    for name, value in _options(request.options):
        if plain(name) in _OF_THE_REQUEST:
            fields[name] = value
        else:
            config[_camel(name)] = value
    if config:
        fields["generationConfig"] = config
    return fields


def _options(options: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the options; those that a ``generationConfig`` holds stand for themselves."""
    found: list[tuple[str, Any]] = []
    for name, value in options.items():
        nested = plain(name) == _CONFIG and isinstance(value, dict)
        found += value.items() if nested else [(name, value)]
    reserved = sorted(name for name, _ in found if plain(name) in _RESERVED)
    if reserved:
        text = f"model options cannot set {', '.join(reserved)}: remove them"
        raise ModelFailure("invalid_request", text)
    return found


def _camel(name: str) -> str:
    """Return the spelling that we use ourselves, so that an option replaces what we would say."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)
