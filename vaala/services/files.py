"""Text files through a client: the person's text, with what is not saved yet.

The disk is asked first in any case: it knows whether the path may be used and what is there. Only
what is text in UTF-8 goes through the client; a client shows other encodings its own way and would
write them back in another.

A client's text is taken as it comes, without a byte order mark or with other line ends than on the
disk when the client hides those. What is written is that text, changed, so the client puts back
what it hid.
"""

from __future__ import annotations

import logging
from functools import partial

from vaala.services import limits
from vaala.services.errors import ServiceGone, ServiceLacks
from vaala.services.live import LiveOffer
from vaala.tools.encoding import Decoded, decode

_log = logging.getLogger(__name__)


def text_of(data: bytes) -> str | None:
    """Return the text of a file's bytes as a client gets it; None for what it does not get."""
    if len(data) > limits.TEXT_BYTES_MAX:
        return None
    decoded = decode(data)
    if not isinstance(decoded, Decoded) or decoded.encoding != "utf-8":
        return None
    return data.decode()  # a byte order mark is the client's, when it gave one


async def read_text(live: LiveOffer, path: str) -> bytes | None:
    """Return a file's text as the client has it, in UTF-8.

    None when the disk is to be read: the client does not have the file, has more of it than is
    taken, or went away. Raises `ServiceFailure` for all else: its text may hold changes that are
    not on the disk, and work on an older one could destroy them.
    """
    files = live.offer.files
    assert files is not None
    what = f"read {path!r}"
    try:
        text = await live.ask(what, limits.FILE_READ_S, partial(files.read, path))
    except (ServiceLacks, ServiceGone) as failure:
        _log.info("%s; the disk is read", failure)
        return None
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise live.garbled(what, "its text has characters that no file can hold") from error
    return data if len(data) <= limits.TEXT_BYTES_MAX else None


async def write_text(live: LiveOffer, path: str, text: str) -> bool:
    """Write a file through the client; false when the client does not have it.

    Raises `ServiceFailure`; the text says when the file may have been written all the same.
    """
    files = live.offer.files
    assert files is not None
    work = partial(files.write, path, text)
    try:
        await live.ask(f"write {path!r}", limits.FILE_WRITE_S, work, changes=True)
    except ServiceLacks as failure:
        _log.info("%s; the disk is written", failure)
        return False
    return True
