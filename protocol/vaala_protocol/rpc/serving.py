"""The requests of the other side that wait for an answer, alone or as members of a batch."""

from __future__ import annotations

from vaala_protocol.rpc.incoming import Id


class Batch:
    """Collects the answers of a batch; they leave together, in the order of their requests."""

    def __init__(self) -> None:
        self.size = 2
        """Bytes of the array, as far as it is filled."""
        self._answers: list[bytes | None] = []
        self._missing = 0

    def place(self) -> int:
        """Keep a place for an answer that is to come."""
        self._answers.append(None)
        self._missing += 1
        return len(self._answers) - 1

    def fill(self, place: int, answer: bytes) -> None:
        self._answers[place] = answer
        self.size += len(answer) + 1
        self._missing -= 1

    def whole(self) -> bytes | None:
        """Return the array once nothing is missing; None also when nothing in it is answered."""
        if self._missing or not self._answers:
            return None
        return b"[" + b",".join(answer for answer in self._answers if answer is not None) + b"]"


class Serving:
    """Ids of requests in work. Each leaves with its answer, and can then be used again."""

    def __init__(self, bytes_max: int) -> None:
        """``bytes_max`` is the size of one message with answers."""
        self._bytes_max = bytes_max
        self._places: dict[Id, tuple[Batch, int] | None] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, id: Id) -> bool:
        return id in self._places

    def add(self, id: Id, batch: Batch | None) -> None:
        self._places[id] = None if batch is None else (batch, batch.place())

    def room_bytes(self, id: Id) -> int:
        """Return how large the answer may be; half of a batch's message is left to refusals.

        Raises `KeyError` when no request with this id is in work.
        """
        place = self._places[id]
        return self._bytes_max if place is None else self._bytes_max // 2 - place[0].size

    def settle(self, id: Id, answer: bytes) -> bytes | None:
        """Return what can be sent now: the answer, the whole batch, or nothing yet.

        Raises `KeyError` when no request with this id is in work.
        """
        place = self._places.pop(id)
        if place is None:
            return answer
        batch, number = place
        batch.fill(number, answer)
        return batch.whole()
