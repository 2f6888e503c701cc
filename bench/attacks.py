"""What a hostile program sends to a server, over plain sockets: run by ``bench/hostile.py``.

    frames    random frames, and random and mutated messages behind a right greeting
    storm     connections, so many a second: closed, reset, plain HTTP, wrong token, upgrade
    held      connections that stay and do nothing of use: silent ones, heads that drip (slowloris),
              upgrades without a greeting, greeted and subscribed ones that never read
    junk      huge and endless frames, floods of pings, bad UTF-8, bytes behind an upgrade
    spin      nothing at all, with all of a processor: what that alone costs the others

Everything is drawn from ``--seed``. One line of JSON tells what was done.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import select
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

# ruff: noqa: E402 # the path comes first
from tests.vaala.server.api.test_api_fuzz import HELLO, messages
from tests.vaala.server.transport.doors import upgrade
from tests.vaala.server.transport.frames import MASK, frame, random_frame

RESET = struct.pack("ii", 1, 0)
PATIENCE_S = 5.0
BAD_UTF8 = (b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b'{"a":"\xe2\x82')


class Attack:
    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.random = Random(given.seed)
        self.done: Counter[str] = Counter()
        host = f"127.0.0.1:{given.port}"
        self.upgrade = upgrade(host, token=given.token)
        self.wrong = upgrade(host, token="wrong")
        self.health = f"GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()

    @contextmanager
    def connection(self, *, reset: bool = False) -> Generator[socket.socket]:
        """What the server does to the connection is no error of ours."""
        with contextlib.suppress(OSError), self.connect() as sock:
            yield sock
            if reset:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.given.port), timeout=PATIENCE_S)

    def open(self, sock: socket.socket, greeting: bytes = b"") -> None:
        sock.sendall(self.upgrade + greeting)
        assert sock.recv(16).startswith(b"HTTP/1.1 101"), "a right upgrade was refused"


def drain(sock: socket.socket, quiet_s: float = 0.0) -> bool:
    """Read what is there, until nothing comes for a moment; tell whether the server is there."""
    while select.select([sock], [], [], quiet_s)[0]:
        try:
            if not sock.recv(1 << 18):
                return False
        except OSError:
            return False
    return True


def frames(attack: Attack) -> None:
    """Send as many frames of either kind; those that break the protocol end a connection soon."""
    while attack.done["frames"] < attack.given.count:
        if attack.random.random() < 10 / 11:
            random_frames(attack, 30)
        else:
            random_messages(attack, 300)


def random_frames(attack: Attack, count: int) -> None:
    attack.done["connections"] += 1
    attack.done["frames"] += count
    with attack.connection(reset=attack.random.random() < 0.3) as sock:
        attack.open(sock)
        sock.sendall(b"".join(random_frame(attack.random) for _ in range(count)))
        if attack.random.random() < 0.5:
            sock.shutdown(socket.SHUT_WR)
        drain(sock, 0.02)


def random_messages(attack: Attack, count: int) -> None:
    """Send messages; the server may end the connection for what is no UTF-8 at any of them."""
    attack.done["connections"] += 1
    with attack.connection() as sock:
        attack.open(sock, frame(1, HELLO))
        conversation = attack.random.choice(attack.given.conversations.split(","))
        for message in messages(attack.random, conversation, count):
            attack.done["frames"] += 1
            binary = not is_utf8(message) and attack.random.random() < 0.9
            sock.sendall(frame(2 if binary else 1, message))
            if attack.done["frames"] % 20 == 0 and not drain(sock):
                return
        drain(sock, 0.05)


def is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def storm(attack: Attack) -> None:
    """Begin each connection at its time; sixteen threads bear a server that is slow for once."""
    given = attack.given
    began = time.monotonic()
    numbers = iter(range(int(given.rate * given.seconds)))
    lock = threading.Lock()
    took: list[float] = []

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            time.sleep(max(0.0, began + number / given.rate - time.monotonic()))
            start = time.monotonic()
            ended = visit(attack, number)
            with lock:
                attack.done[ended] += 1
                took.append(time.monotonic() - start)

    threads = [threading.Thread(target=work) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    attack.done["milliseconds in all"] = int((time.monotonic() - began) * 1000)
    attack.done["slowest, milliseconds"] = int(max(took) * 1000)


def visit(attack: Attack, number: int) -> str:
    """Make one connection of a kind and return how it ended."""
    try:
        with attack.connect() as sock:
            match number % 6:
                case 0:
                    return "closed"
                case 1:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                    return "reset"
                case 2:
                    sock.sendall(attack.health)
                case 3:
                    sock.sendall(attack.wrong)
                case 4:
                    sock.sendall(attack.upgrade)
                case _:
                    sock.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
            return sock.recv(12).decode("latin-1") or "no answer"
    except OSError as error:
        return f"failed: {error.strerror or error}"


def held(attack: Attack) -> None:
    """Hold connections until the server has closed them; drip a byte on some twice a second."""
    given, ends = attack.given, time.monotonic() + attack.given.seconds
    groups: dict[int, str] = {}
    sockets: dict[int, socket.socket] = {}
    poll = select.poll()
    for name, begin in ways_to_hold(attack).items():
        for _ in range(given.count):
            sock = attack.connect()
            begin(sock)
            sock.setblocking(False)
            sockets[sock.fileno()], groups[sock.fileno()] = sock, name
            poll.register(sock, select.POLLRDHUP)
            attack.done[f"{name}: held"] += 1
    began = time.monotonic()
    while sockets and time.monotonic() < ends:
        for number, _ in poll.poll(500):
            attack.done[f"{groups[number]}: closed by the server"] += 1
            attack.done[f"{groups[number]}: last after s"] = round(time.monotonic() - began)
            poll.unregister(number)
            sockets.pop(number).close()
        for number, sock in sockets.items():
            if groups[number] == "slow head":
                with contextlib.suppress(OSError):
                    sock.send(b"x")
    for sock in sockets.values():
        sock.close()


def ways_to_hold(attack: Attack) -> dict[str, Callable[[socket.socket], object]]:
    first = attack.given.conversations.split(",")[0]
    subscribe = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "conversation/subscribe",
         "params": {"conversationId": first}}
    ).encode()  # fmt: skip
    return {
        "silent": lambda sock: None,
        "slow head": lambda sock: sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "),
        "upgraded": attack.open,
        "greeted": lambda sock: attack.open(sock, frame(1, HELLO)),
        "subscribed": lambda sock: attack.open(sock, frame(1, HELLO) + frame(1, subscribe)),
    }


def junk(attack: Attack) -> None:
    ends = time.monotonic() + attack.given.seconds
    kinds = (huge_claim, huge_frame, huge_message, deep, empty_fragments, pings, bad_text, behind)
    while time.monotonic() < ends:
        for kind in kinds:
            attack.done[kind.__name__] += 1
            kind(attack)


def huge_claim(attack: Attack) -> None:
    with attack.connection() as sock:
        attack.open(sock)
        sock.sendall(bytes((0x81, 0xFF)) + struct.pack("!Q", (1 << 62) - 1) + MASK)
        send_until_refused(sock, b"x" * 65_536, 64)


def huge_frame(attack: Attack) -> None:
    with attack.connection() as sock:
        attack.open(sock)
        sock.sendall(bytes((0x81, 0xFF)) + struct.pack("!Q", 40 << 20) + MASK)
        send_until_refused(sock, b"x" * 65_536, 640)


def huge_message(attack: Attack) -> None:
    """The largest message that there may be, and no use; the mask leaves it as it is."""
    with attack.connection() as sock:
        attack.open(sock, frame(1, HELLO))
        text = b'{"jsonrpc":"2.0","id":1,"method":"conversation/search","params":{"text":"'
        text += b"x" * ((16 << 20) - len(text) - 3) + b'"}}'
        sock.sendall(bytes((0x81, 0xFF)) + struct.pack("!Q", len(text)) + bytes(4) + text)
        drain(sock, 1.0)


def deep(attack: Attack) -> None:
    with attack.connection() as sock:
        attack.open(sock, frame(1, HELLO))
        for text in (b"[" * 100_000, b'{"a":' * 100_000, b"[" + b"1," * 200_000 + b"1]"):
            sock.sendall(bytes((0x81, 0xFF)) + struct.pack("!Q", len(text)) + bytes(4) + text)
        drain(sock, 0.5)


def empty_fragments(attack: Attack) -> None:
    with attack.connection() as sock:
        attack.open(sock)
        sock.sendall(frame(1, b"", fin=False))
        send_until_refused(sock, frame(0, b"", fin=False) * 1_000, 100)


def pings(attack: Attack) -> None:
    with attack.connection(reset=True) as sock:
        attack.open(sock)
        send_until_refused(sock, frame(9, b"x" * 125) * 100, 200)


def bad_text(attack: Attack) -> None:
    for text in BAD_UTF8:
        for cut in (False, True):
            with attack.connection() as sock:
                attack.open(sock)
                parts = [frame(1, text[:1], fin=False), frame(0, text[1:])]
                sock.sendall(b"".join(parts) if cut else frame(1, text))
                drain(sock, 0.05)


def behind(attack: Attack) -> None:
    for data in (b"GARBAGE\xff\xff", bytes(70_000), frame(8, b"") * 3, b"\x81\xff", b"\x00" * 9):
        for head in (attack.upgrade, attack.wrong, attack.health):
            with attack.connection() as sock:
                sock.sendall(head + data)
                drain(sock, 0.05)


def send_until_refused(sock: socket.socket, data: bytes, times: int) -> None:
    """Send again and again, without reading, until the server has had enough of it."""
    for _ in range(times):
        sock.sendall(data)
    drain(sock, 0.2)


def spin(attack: Attack) -> None:
    ends = time.monotonic() + attack.given.seconds
    while time.monotonic() < ends:
        attack.done["turns"] += 1


KINDS: dict[str, Callable[[Attack], None]] = {
    "frames": frames, "storm": storm, "held": held, "junk": junk, "spin": spin,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--conversations", required=True, help="ids, with commas between them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=0, help="frames, or connections of each way")
    parser.add_argument("--rate", type=float, default=0.0, help="connections a second")
    parser.add_argument("--seconds", type=float, default=0.0)
    attack = Attack(parser.parse_args())
    KINDS[attack.given.kind](attack)
    told: dict[str, Any] = dict(attack.done)
    print(json.dumps(told))


if __name__ == "__main__":
    main()
