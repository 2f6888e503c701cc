"""The tables of methods: nothing is missing, nothing is there twice, names follow the rules."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator
from typing import Any, get_args

import msgspec
import pytest

import vaala_protocol
from vaala_protocol.base import Value
from vaala_protocol.methods import CLIENT_REQUESTS, NOTIFICATIONS, REQUESTS, Notification, Request
from vaala_protocol.methods.base import Done

EVERY: tuple[type[Any], ...] = (*REQUESTS, *CLIENT_REQUESTS, *NOTIFICATIONS)
METHOD = re.compile(r"[a-z]+/[a-z][a-zA-Z]*")
FIELD = re.compile(r"[a-z][a-zA-Z0-9]*")


def _subclasses(base: type[Any]) -> Iterator[type[Any]]:
    for module in pkgutil.walk_packages(vaala_protocol.__path__, "vaala_protocol."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    for kind in base.__subclasses__():
        if kind.__module__.startswith("vaala_protocol."):
            yield kind
        yield from _subclasses(kind)


def test_every_request_is_in_one_of_the_tables() -> None:
    assert set(_subclasses(Request)) == {*REQUESTS, *CLIENT_REQUESTS}
    assert not set(REQUESTS) & set(CLIENT_REQUESTS)


def test_every_notification_is_in_the_table() -> None:
    assert set(_subclasses(Notification)) == set(NOTIFICATIONS)


def test_no_name_is_there_twice() -> None:
    names = [kind.method for kind in EVERY]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.method)
def test_a_method_is_named_and_told_by_the_rules(kind: type[Any]) -> None:
    assert METHOD.fullmatch(kind.method)
    assert issubclass(kind, Value)
    assert kind.__doc__, "what it does is told to those who write clients"
    wanted = "Notification" if issubclass(kind, Notification) else "Params"
    assert kind.__name__.endswith(wanted)


@pytest.mark.parametrize("kind", [*REQUESTS, *CLIENT_REQUESTS], ids=lambda kind: kind.method)
def test_the_result_is_the_one_that_the_types_promise(kind: type[Any]) -> None:
    (promised,) = (
        get_args(base)[0]
        for base in getattr(kind, "__orig_bases__", ())
        if getattr(base, "__origin__", None) is Request
    )
    assert kind.result is promised
    assert issubclass(promised, Value)


def test_every_field_is_camel_case_on_the_wire() -> None:
    kinds = set(_subclasses(Value)) | {Done}
    assert [
        f"{kind.__name__}.{field.encode_name}"
        for kind in kinds
        for field in msgspec.structs.fields(kind)
        if not FIELD.fullmatch(field.encode_name)
    ] == []


def test_times_are_integers_of_milliseconds() -> None:
    kinds = set(_subclasses(Value))
    assert [
        f"{kind.__name__}.{field.name}"
        for kind in kinds
        for field in msgspec.structs.fields(kind)
        if field.name.endswith("_at") and field.type not in (int, int | None)
    ] == []
