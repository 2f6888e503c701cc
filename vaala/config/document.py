"""A YAML file that remembers on which line each of its values stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Any

from msgspec import Struct
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.scalarbool import ScalarBoolean

from vaala.config.errors import ConfigError, Problem
from vaala.config.limits import CONFIG_FILE_BYTES_MAX, CONFIG_VALUES_MAX, VALUE_DEPTH_MAX
from vaala.named_file import open_regular


class Document(Struct, frozen=True):
    file: Path
    data: Any
    """What YAML made of it, with the places; an empty file is an empty mapping."""
    values: Any
    """The same as plain dicts, lists and scalars."""

    def line(self, way: Sequence[str | int]) -> int | None:
        """Return the line of the value that ``way`` leads to, or of the nearest one above it."""
        node, line = self.data, None
        for step in way:
            places = getattr(node, "lc", None)
            if places is None:
                return line
            try:
                place = places.key(step) if isinstance(step, str) else places.item(step)
                node = node[step]
            except (KeyError, IndexError, TypeError):
                return line
            line = place[0] + 1
        return line


def read_file(file: Path) -> bytes | None:
    """Return what is in a file; None when there is none. Raises `ConfigError`."""
    try:
        with BufferedReader(open_regular(file)) as opened:
            content = opened.read(CONFIG_FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(file, None, f"cannot be read: {error.strerror or error}") from error
    if len(content) > CONFIG_FILE_BYTES_MAX:
        raise _failed(file, None, f"is larger than {CONFIG_FILE_BYTES_MAX} bytes")
    return content


def parse_document(file: Path, content: bytes | None) -> Document:
    """Return what ``content`` says as that of ``file``; None: of one that is not there.

    Raises `ConfigError` for what is no YAML, or too much of it.
    """
    if content is None:
        return Document(file, {}, {})
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _failed(file, line, f"is not UTF-8 from byte {error.start} on") from error
    data = _parse(file, text)
    try:
        return Document(file, data, _plain(data, iter(range(CONFIG_VALUES_MAX))))
    except RecursionError as error:
        raise _failed(file, None, "is nested too deep") from error
    except StopIteration as error:
        text = f"holds more than {CONFIG_VALUES_MAX} values, those behind aliases counted each time"
        raise _failed(file, None, text) from error


def _parse(file: Path, text: str) -> Any:
    try:
        data = YAML(typ="rt").load(text)
    except DuplicateKeyError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        problem = (error.problem or "a key stands twice").split(" with value")[0]
        raise _failed(file, line, f"{problem}: keep one of the two") from error
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        detail = ", ".join(part for part in (error.context, error.problem) if part)
        raise _failed(file, line, f"is not YAML: {detail}") from error
    except RecursionError as error:
        raise _failed(file, None, "is nested too deep") from error
    except (YAMLError, ValueError) as error:
        raise _failed(file, None, f"is not YAML: {error}") from error
    return {} if data is None else data


def is_deeper(value: Any, levels: int) -> bool:
    """Tell whether a value has more than so many mappings and lists in each other."""
    row = [value]
    for _ in range(levels + 1):
        row = [one for one in row if _holds(one)]
        if not row:
            return False
        row = [
            one for held in row for one in (held.values() if isinstance(held, Mapping) else held)
        ]
    return True


def _holds(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _plain(value: Any, budget: Iterator[int], levels: int = VALUE_DEPTH_MAX) -> Any:
    """Return a value without the library's own types, which nothing else can encode.

    Raises ``RecursionError`` for one of more than so many levels: whoever gets it goes through it
    with more stack for each than this does.
    """
    next(budget)
    if levels == 0 and _holds(value):
        raise RecursionError
    match value:
        case Mapping():
            return {_scalar(key): _plain(one, budget, levels - 1) for key, one in value.items()}
        case list():
            return [_plain(one, budget, levels - 1) for one in value]
        case _:
            return _scalar(value)


def _scalar(value: Any) -> Any:
    match value:
        case bool() | ScalarBoolean():
            return bool(value)
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case _:
            return value


def _failed(file: Path, line: int | None, text: str) -> ConfigError:
    return ConfigError((Problem(file, line, "", text),))
