"""A script, as data, checked and compiled to a `Program`."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, cast, get_args

from msgspec import Struct
from msgspec.structs import replace

from vaala.models.base import FinishReason
from vaala.models.scripted.program import (
    Again,
    Answer,
    Branch,
    Enter,
    Jump,
    Operation,
    Pace,
    Program,
    ScriptedCall,
    ScriptedFailure,
)
from vaala.models.scripted.template import Template, parse_expression, parse_template
from vaala_protocol.base import Malformed, encode, from_json
from vaala_protocol.errors import BadRequest
from vaala_protocol.settings import ErrorKind, Usage

_ANSWER_KEYS = frozenset(
    {"say", "think", "call", "fail", "cut", "hang", "wait", "finish", "usage"}
    | {"delay_s", "pace_s", "chunk"}
)
_CALL_KEYS = frozenset({"tool", "arguments", "raw", "as"})
_FAILURE_KEYS = frozenset({"kind", "message", "retryable", "retry_after_s", "status", "times"})
_RETRYABLE = frozenset({"rate_limit", "overloaded", "network", "incomplete"})
_CHUNK_CHARS = 24


def compile_script(data: Any, name: str = "script") -> Program:
    """Check and compile; raises `BadRequest` that says where in the script, and what is wrong."""
    top = _fields(data, name, frozenset({"steps", "chunk", "pace_s", "window"}))
    if not top.get("steps"):
        raise BadRequest(f"{name}: needs steps, a list with at least one step")
    pace = Pace(
        _number(top, "chunk", name, _CHUNK_CHARS, least=1), 0.0, _seconds(top, "pace_s", name)
    )
    compiler = _Compiler(pace)
    compiler.steps(top["steps"], f"{name}: steps")
    compiler.check_names()
    window = _number(top, "window", name, 0)
    try:
        digest = zlib.crc32(encode(data))
    except (TypeError, UnicodeEncodeError) as error:
        raise BadRequest(f"{name}: holds what JSON cannot hold: {error}") from error
    return Program(tuple(compiler.operations), window or None, digest)


class _Reference(Struct):
    name: str
    where: str


class _Compiler:
    def __init__(self, pace: Pace) -> None:
        self.operations: list[Operation] = []
        self._pace = pace
        self._result_names: set[str] = set()
        self._references: list[_Reference] = []

    def steps(self, data: Any, where: str) -> None:
        if not isinstance(data, list):
            raise BadRequest(f"{where}: is a list of steps")
        for number, step in enumerate(data):
            self._step(step, f"{where}[{number}]")

    def check_names(self) -> None:
        """Refuse a template that reads a result which no call has."""
        for reference in self._references:
            if reference.name not in self._result_names:
                known = ", ".join(sorted(self._result_names)) or "none"
                raise BadRequest(
                    f"{reference.where}: no call is named {reference.name!r}; there are: {known}"
                )

    def _step(self, step: Any, where: str) -> None:
        if not isinstance(step, Mapping) or not step:
            raise BadRequest(f"{where}: is a mapping with say, call, when, repeat ...")
        if "when" in step:
            self._branch(_fields(step, where, frozenset({"when", "then", "else"})), where)
        elif "repeat" in step:
            self._repeat(_fields(step, where, frozenset({"repeat", "steps"})), where)
        else:
            self.operations.append(self._answer(_fields(step, where, _ANSWER_KEYS), where))

    def _branch(self, step: dict[str, Any], where: str) -> None:
        when = parse_expression(_text(step, "when", where), f"{where}.when")
        if when.result_name is not None:
            self._references.append(_Reference(when.result_name, f"{where}.when"))
        branch = self._reserve()
        self.steps(step.get("then", []), f"{where}.then")
        leave = self._reserve()
        self.operations[branch] = Branch(when, len(self.operations))
        self.steps(step.get("else", []), f"{where}.else")
        self.operations[leave] = Jump(len(self.operations))

    def _repeat(self, step: dict[str, Any], where: str) -> None:
        times = _number(step, "repeat", where, 0)
        enter = self._reserve()
        self.steps(step.get("steps"), f"{where}.steps")
        self.operations.append(Again(enter + 1, times))
        self.operations[enter] = Enter(times, len(self.operations))

    def _reserve(self) -> int:
        """Keep the place of an operation whose target is not known yet."""
        self.operations.append(Jump(0))
        return len(self.operations) - 1

    def _answer(self, step: dict[str, Any], where: str) -> Answer:
        calls = step.get("call", [])
        if not isinstance(calls, list):
            calls = [calls]
        finish = step.get("finish")
        if finish is not None and finish not in get_args(FinishReason):
            raise BadRequest(f"{where}.finish: is one of {', '.join(get_args(FinishReason))}")
        return Answer(
            say=self._template(step.get("say", ""), f"{where}.say"),
            think=self._template(step.get("think", ""), f"{where}.think"),
            calls=tuple(self._call(c, f"{where}.call[{n}]") for n, c in enumerate(calls)),
            pace=self._answer_pace(step, where),
            fail=_failure(step.get("fail"), f"{where}.fail"),
            cut=_failure({} if step.get("cut") is True else step.get("cut"), f"{where}.cut"),
            hang=bool(step.get("hang", False)),
            gate=_text(step, "wait", where) if "wait" in step else None,
            finish=cast("FinishReason | None", finish),
            usage=_usage(step.get("usage"), f"{where}.usage"),
        )

    def _answer_pace(self, step: dict[str, Any], where: str) -> Pace:
        default = replace(self._pace, delay_s=_seconds(step, "delay_s", where))
        return Pace(
            _number(step, "chunk", where, default.chunk_chars, least=1),
            default.delay_s,
            _seconds(step, "pace_s", where) if "pace_s" in step else default.pace_s,
        )

    def _call(self, data: Any, where: str) -> ScriptedCall:
        fields = _fields(data, where, _CALL_KEYS)
        tool = _text(fields, "tool", where)
        name = _text(fields, "as", where) if "as" in fields else tool
        self._result_names.add(name)
        if "raw" in fields:
            return ScriptedCall(tool, self._template(fields["raw"], f"{where}.raw"), name)
        arguments = fields.get("arguments", {})
        if not isinstance(arguments, Mapping):
            raise BadRequest(f"{where}.arguments: is a mapping; use raw for any other text")
        return ScriptedCall(tool, self._structure(arguments, f"{where}.arguments"), name)

    def _structure(self, value: Any, where: str) -> Any:
        if isinstance(value, str):
            return self._template(value, where)
        if isinstance(value, Mapping):
            return {str(k): self._structure(item, f"{where}.{k}") for k, item in value.items()}
        if isinstance(value, list):
            return [self._structure(item, f"{where}[{n}]") for n, item in enumerate(value)]
        return value

    def _template(self, text: Any, where: str) -> Template:
        if not isinstance(text, str):
            raise BadRequest(f"{where}: is a text; put it in quotes")
        template = parse_template(text, where)
        self._references += [_Reference(name, where) for name in template.result_names]
        return template


def _failure(data: Any, where: str) -> ScriptedFailure | None:
    if data is None or data is False:
        return None
    fields = _fields(data, where, _FAILURE_KEYS)
    kind = fields.get("kind", "incomplete")
    if kind not in get_args(ErrorKind):
        raise BadRequest(f"{where}.kind: is one of {', '.join(get_args(ErrorKind))}")
    return ScriptedFailure(
        kind=kind,
        message=str(fields.get("message", f"scripted: {kind}")),
        retryable=bool(fields.get("retryable", kind in _RETRYABLE)),
        retry_after_s=_seconds(fields, "retry_after_s", where)
        if "retry_after_s" in fields
        else None,
        status=fields.get("status"),
        times=_number(fields, "times", where, 1) if "times" in fields else None,
    )


def _usage(data: Any, where: str) -> Usage | None:
    if data is None:
        return None
    names = {"input", "cache_read", "cache_write", "output", "reasoning"}
    fields = _fields(data, where, frozenset(names))
    wire = {"cache_read": "cacheRead", "cache_write": "cacheWrite"}
    try:
        return from_json({wire.get(name, name): value for name, value in fields.items()}, Usage)
    except Malformed as error:
        raise BadRequest(f"{where}: {error}") from error


def _fields(data: Any, where: str, known: frozenset[str]) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise BadRequest(f"{where}: is a mapping with {', '.join(sorted(known))}")
    unknown = [str(key) for key in data if key not in known]
    if unknown:
        raise BadRequest(
            f"{where}: unknown {', '.join(unknown)}; there are {', '.join(sorted(known))}"
        )
    return dict(cast("Mapping[str, Any]", data))


def _text(fields: Mapping[str, Any], key: str, where: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str) or not value:
        raise BadRequest(f"{where}: needs {key}, a text")
    return value


def _number(
    fields: Mapping[str, Any], key: str, where: str, default: int, *, least: int = 0
) -> int:
    value = fields.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise BadRequest(f"{where}.{key}: is a whole number, at least {least}, not {value!r}")
    return value


def _seconds(fields: Mapping[str, Any], key: str, where: str) -> float:
    value = fields.get(key, 0.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise BadRequest(f"{where}.{key}: is a number of seconds, not {value!r}")
    return float(value)
