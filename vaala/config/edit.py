"""Changes one value of the configuration, or the whole of a file, if the result is good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from vaala.config.concealed import MARK, holds_secret, marked
from vaala.config.config import Config
from vaala.config.document import is_deeper, parse_document, read_file
from vaala.config.errors import ConfigError, Problem
from vaala.config.limits import EDIT_ATTEMPTS_MAX, VALUE_DEPTH_MAX
from vaala.config.load import FILES, load_config
from vaala.config.replace_file import Changed, locked, replace_file
from vaala.config.yaml_text import Unchangeable, Way, change
from vaala_protocol.errors import BadRequest, NotFound

_BOM = b"\xef\xbb\xbf"


class Editor(Struct, frozen=True):
    """Edits one configuration; what is good is decided by `load_config` with the same arguments.

    Its methods block the thread: in trio call them through a thread.
    """

    directory: Path
    environ: Mapping[str, str]
    tools: Sequence[str] | None = None

    def file(self, name: str) -> Path:
        """Return the path of a file by its name, with or without ".yaml". Raises `NotFound`."""
        full = name if name.endswith(".yaml") else f"{name}.yaml"
        if full not in FILES:
            raise NotFound(f"no file {name!r} in the configuration; there are {', '.join(FILES)}")
        return self.directory / full

    def set(self, name: str, way: Way, value: Any) -> Config:
        """Change one value and return the configuration as it is now. None takes the key out.

        The result is checked before it is written: a file that is not good never stands there.
        When somebody changes the file meanwhile, the value is set in what they wrote. Comments,
        order and style stay. Durable on return. Raises `ConfigError` with the problems that the
        change would make, or that were there; `BadRequest` for a value that cannot stand there.
        """
        file = self.file(name)
        if is_deeper(value, VALUE_DEPTH_MAX - len(way)):
            text = f"{file.name}: a file has at most {VALUE_DEPTH_MAX} levels, and this needs more"
            raise BadRequest(text, field="value")
        if (place := marked(file.name, way, value)) is not None:
            raise BadRequest(
                f"{file.name}: {'.'.join(map(str, place))}: {MARK} stands for a secret that is not "
                "shown; set what is beside it alone, or the secret itself",
                field="value",
            )
        with locked(self.directory):
            for _ in range(EDIT_ATTEMPTS_MAX):
                before = read_file(file)
                after = _changed(file, before, way, value)
                try:
                    return self._put(file, before, after)
                except Changed:
                    continue
        text = "is being changed all the time; try again"
        raise ConfigError((Problem(file, None, "", text),))

    def replace(self, name: str, before: bytes | None, after: bytes) -> Config:
        """Put ``after`` in place of the whole file, if it is still ``before`` (None: no file).

        Raises `Changed` when it is not, and `ConfigError` with what is wrong with ``after``.
        """
        with locked(self.directory):
            return self._put(self.file(name), before, after)

    def check(self, name: str, content: bytes) -> Config:
        """Return the configuration as it would be with this content. Raises `ConfigError`."""
        instead = {self.file(name).name: content}
        return load_config(self.directory, self.environ, tools=self.tools, instead=instead)

    def _put(self, file: Path, before: bytes | None, after: bytes) -> Config:
        config = self.check(file.name, after)
        if after != (before or b""):
            private = holds_secret(file.name, parse_document(file, after).values)
            replace_file(file, before, after, private=private)
        return config


def _changed(file: Path, before: bytes | None, way: Way, value: Any) -> bytes:
    """Return the content with the change; a byte order mark stays."""
    content = before or b""
    parse_document(file, content)  # tells what is wrong with it, and where
    mark = _BOM if content.startswith(_BOM) else b""
    try:
        return mark + change(content.removeprefix(mark).decode(), way, value).encode()
    except (Unchangeable, ValueError, TypeError) as error:
        key = ".".join(map(str, way))
        raise BadRequest(f"{file.name}: {key}: {error}", field="key") from error
