"""Files of the package, as a browser gets them."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from vaala.server.transport.head import Head
from vaala.server.transport.http.answer import Answer
from vaala.server.transport.http.site import Handler
from vaala_protocol.errors import NotFound

PAGE = Path(__file__).parent / "page"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}
_INDEX = "index.html"


class _File(Struct, frozen=True):
    kind: str
    etag: str
    data: bytes


def static_files(folder: Path) -> Handler:
    """Return what answers with the files below a folder, which are read here, once. Blocks.

    A path is looked up among them as it is, so none leads out of the folder. An empty one is the
    index.
    """
    files = {
        path.relative_to(folder).as_posix(): _read(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in _TYPES
    }

    async def handle(head: Head, rest: str) -> Answer:
        file = files.get(rest or _INDEX)
        if file is None:
            raise NotFound(f"there is no file {rest[:200]!r} here")
        headers = (
            ("Content-Type", file.kind),
            ("ETag", file.etag),
            ("Cache-Control", "no-cache"),  # ask each time: an upgrade changes the files
        )
        if head.lists("if-none-match", file.etag) or head.header("if-none-match") == "*":
            return Answer(304, headers)
        return Answer(200, headers, file.data)

    return handle


def redirect(target: str) -> Handler:
    """Return what leads a browser to another path."""

    async def handle(head: Head, rest: str) -> Answer:
        return Answer(307, (("Location", target),))

    return handle


def _read(path: Path) -> _File:
    data = path.read_bytes()
    return _File(_TYPES[path.suffix], f'"{sha256(data).hexdigest()[:32]}"', data)
