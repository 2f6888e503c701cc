"""`Request`: the parameters of a method, bound to the name and the result of that method."""

from __future__ import annotations

from typing import Any, ClassVar, Generic, TypeVar

from vaala_protocol.base import Value

R = TypeVar("R")


class Request(Generic[R]):
    """Mixed into the parameters of a method; its docstring says what the method does."""

    method: ClassVar[str]
    result: ClassVar[type[Any]]


class Notification:
    """Mixed into the parameters of a message that is not answered."""

    method: ClassVar[str]


class Done(Value, frozen=True, kw_only=True):
    """The answer of a method that has nothing to tell but that it was done."""
