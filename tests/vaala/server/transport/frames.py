"""WebSocket frames made by hand, right and wrong ones (RFC 6455, section 5.2)."""

from __future__ import annotations

import struct
from random import Random

import trio

from tests.vaala.server.transport.doors import read_head, upgrade

MASK = b"\x01\x02\x03\x04"


def frame(
    opcode: int, payload: bytes, *, fin: bool = True, mask: bool = True, rsv: int = 0
) -> bytes:
    """Return a frame of a client."""
    first = (0x80 if fin else 0) | rsv | opcode
    masked = 0x80 if mask else 0
    length = len(payload)
    if length < 126:
        head = bytes((first, masked | length))
    elif length < 1 << 16:
        head = struct.pack("!BBH", first, masked | 126, length)
    else:
        head = struct.pack("!BBQ", first, masked | 127, length)
    if not mask:
        return head + payload
    return head + MASK + bytes(byte ^ MASK[at % 4] for at, byte in enumerate(payload))


async def opened(stream: trio.SocketStream, host: str, *more: str, behind: bytes = b"") -> bytes:
    """Upgrade a connection; return the answer. ``behind`` is sent in the same packet."""
    await stream.send_all(upgrade(host, *more) + behind)
    answer = await read_head(stream)
    assert answer.startswith(b"HTTP/1.1 101 "), answer
    return answer


def random_frame(random: Random) -> bytes:
    """Return a frame that is right, or wrong in one of many ways."""
    opcode = random.choice((0, 1, 1, 1, 2, 8, 9, 10, random.randrange(16)))
    size = random.choice((0, 1, 5, 125, 126, 300))
    payload = random.choice((random.randbytes(size), b'{"jsonrpc":"2.0","id":1}', b"x" * size))
    made = frame(
        opcode,
        payload,
        fin=random.random() < 0.8,
        mask=random.random() < 0.95,
        rsv=random.choice((0, 0, 0, 0, 0, 0x10, 0x20, 0x40)),
    )
    match random.randrange(8):
        case 0:  # a bit is wrong
            at = random.randrange(len(made))
            return made[:at] + bytes((made[at] ^ (1 << random.randrange(8)),)) + made[at + 1 :]
        case 1:  # the rest is missing
            return made[: random.randrange(len(made))]
        case 2:  # it says that it is enormous
            return bytes((made[0], 0xFF)) + struct.pack("!Q", random.getrandbits(63)) + MASK
        case 3:
            return random.randbytes(random.randrange(1, 64))
        case _:
            return made
