"""Values and objects that several wire formats check alike."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection
from dataclasses import dataclass, field

from vaala.testing.validators.common import (
    JsonObject,
    Report,
    Rule,
    as_array,
    child,
    is_blank,
    show,
)

MAX_INT64 = 2**63 - 1
_WEB_URL = re.compile(r"https?://[^\s/]+(?:/\S*)?")


@dataclass(frozen=True, slots=True)
class Range:
    """Numbers from ``low`` to ``high``, both included; true and false are none."""

    low: float
    high: float
    whole: bool = False

    def fits(self, value: object) -> bool:
        kinds = int if self.whole else int | float
        return (
            isinstance(value, kinds)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
        )

    def __str__(self) -> str:
        return f"{'an integer' if self.whole else 'a number'} from {self.low} to {self.high}"


@dataclass(frozen=True, slots=True)
class Shape:
    """The names that an object must have, and those that it may have besides."""

    required: frozenset[str]
    optional: frozenset[str] = field(default_factory=frozenset[str])

    def check(self, node: JsonObject, rule: Rule, path: str, report: Report) -> bool:
        """Report each missing and each unknown name. False: one that must be there is missing."""
        for key in sorted(node.keys() - self.required - self.optional):
            report.add(rule, child(path, key), f"{show(key)} is not known here")
        missing = sorted(self.required - node.keys())
        for key in missing:
            report.add(rule, path, f"{show(key)} is missing")
        return not missing


def shape(required: str, optional: str = "") -> Shape:
    """A shape from names parted by spaces."""
    return Shape(frozenset(required.split()), frozenset(optional.split()))


def is_text(value: object) -> bool:
    return isinstance(value, str) and not is_blank(value)


def is_flag(value: object) -> bool:
    return isinstance(value, bool)


def are_texts(value: object) -> bool:
    """True for an array with at least one text, none of them blank."""
    items = as_array(value)
    return bool(items) and all(is_text(item) for item in items or ())


def is_one_of(value: object, choices: Collection[str]) -> bool:
    return isinstance(value, str) and value in choices


def is_web_url(value: object) -> bool:
    return isinstance(value, str) and _WEB_URL.fullmatch(value) is not None


def decoded_size(value: object) -> int | None:
    """How many bytes a base64 text holds; None when it is no base64 or holds nothing."""
    if not isinstance(value, str):
        return None
    try:
        return len(base64.b64decode(value, validate=True)) or None
    except (binascii.Error, ValueError):
        return None
