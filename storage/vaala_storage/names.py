"""The one rule for names: safe as a file name on every system, never hidden, never a way out."""

from __future__ import annotations

import re

from vaala_storage.limits import NAME_CHARS_MAX, PATH_CHARS_MAX

_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*")


def check_name(name: str) -> None:
    """Raise ``ValueError`` unless ``name`` can be a stream id, a blob key or a part of a path."""
    if len(name) > NAME_CHARS_MAX or _NAME.fullmatch(name) is None:
        raise ValueError(
            f"{name[:NAME_CHARS_MAX]!r} cannot be a name in storage: at most {NAME_CHARS_MAX} of "
            "A-Z a-z 0-9 . _ - and no dot in front"
        )


def check_path(path: str) -> None:
    """Raise ``ValueError`` unless ``path`` is made of names with "/" between them."""
    if len(path) > PATH_CHARS_MAX:
        raise ValueError(f"a path of {len(path)} characters: at most {PATH_CHARS_MAX}")
    for name in path.split("/"):
        check_name(name)
