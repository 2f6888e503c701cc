"""Changes values of the configuration, or the whole of a file, if the result is good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
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


class Edit(Struct, frozen=True):
    """A value to be set in a file ("models.yaml"); None takes the key out."""

    file: str
    way: Way
    value: Any


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
        """Change one value, as `apply`."""
        return self.apply((Edit(self.file(name).name, way, value),))

    def apply(self, edits: Sequence[Edit]) -> Config:
        """Make all of the edits, or none, and return the configuration as it is now.

        The result is checked before it is written: a file that is not good never stands there.
        When somebody changes a file meanwhile, the values are set in what they wrote. Comments,
        order and style stay. Files are written in the order of the edits, and put back when one of
        them cannot be; only a crash between two leaves the first ones changed. Durable on return.
        Raises `ConfigError` with the problems that the edits would make, or that were there;
        `BadRequest` for a value that cannot stand there.
        """
        _check_values(edits)
        with locked(self.directory):
            for _ in range(EDIT_ATTEMPTS_MAX):
                before, after = self._edited(edits)
                try:
                    return self._put(before, after)
                except Changed:
                    continue
        text = "is being changed all the time; try again"
        raise ConfigError((Problem(self.file(edits[0].file), None, "", text),))

    def preview(self, edits: Sequence[Edit]) -> Config:
        """Return the configuration as it would be with the edits; raises as `apply`."""
        _check_values(edits)
        _, after = self._edited(edits)
        return self.check(after)

    def _edited(self, edits: Sequence[Edit]) -> tuple[dict[Path, bytes | None], dict[Path, bytes]]:
        """Return what is in the files of the edits, and what would be."""
        before: dict[Path, bytes | None] = {}
        after: dict[Path, bytes] = {}
        for edit in edits:
            file = self.file(edit.file)
            if file not in before:
                before[file] = read_file(file)
            after[file] = _changed(file, after.get(file, before[file]), edit.way, edit.value)
        return before, after

    def replace(self, name: str, before: bytes | None, after: bytes) -> Config:
        """Put ``after`` in place of the whole file, if it is still ``before`` (None: no file).

        Raises `Changed` when it is not, and `ConfigError` with what is wrong with ``after``.
        """
        with locked(self.directory):
            file = self.file(name)
            return self._put({file: before}, {file: after})

    def check(self, contents: Mapping[Path, bytes]) -> Config:
        """Return the configuration as it would be with these files. Raises `ConfigError`."""
        instead = {file.name: content for file, content in contents.items()}
        return load_config(self.directory, self.environ, tools=self.tools, instead=instead)

    def _put(self, before: Mapping[Path, bytes | None], after: Mapping[Path, bytes]) -> Config:
        config = self.check(after)
        written: list[Path] = []
        try:
            for file, content in after.items():
                if content != (before[file] or b""):
                    _write(file, before[file], content)
                    written.append(file)
        except BaseException:
            for file in reversed(written):
                _put_back(file, before[file], after[file])
            raise
        return config


def _check_values(edits: Sequence[Edit]) -> None:
    for name, way, value in ((edit.file, edit.way, edit.value) for edit in edits):
        if is_deeper(value, VALUE_DEPTH_MAX - len(way)):
            text = f"{name}: a file has at most {VALUE_DEPTH_MAX} levels, and this needs more"
            raise BadRequest(text, field="value")
        if (place := marked(name, way, value)) is not None:
            raise BadRequest(
                f"{name}: {'.'.join(map(str, place))}: {MARK} stands for a secret that is not "
                "shown; set what is beside it alone, or the secret itself",
                field="value",
            )


def _write(file: Path, before: bytes | None, after: bytes) -> None:
    private = holds_secret(file.name, parse_document(file, after).values)
    replace_file(file, before, after, private=private)


def _put_back(file: Path, before: bytes | None, after: bytes) -> None:
    """Undo a change, unless somebody has changed the file since."""
    with suppress(Changed, OSError, ConfigError):
        if before is not None:
            _write(file, after, before)
        elif read_file(file) == after:
            file.unlink()


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
